"""Seeds: tables of the rows of files that are part of the project."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from runner.compile.compiled import Compiled
from runner.csv_text import read_csv
from runner.engine.errors import QueryFailed
from runner.engine.session import Spark
from runner.engine.tables import Tables
from runner.errors import Where, excerpt
from runner.files import read_text
from runner.project.nodes import Node, SeedFile
from runner.render import name as quoted

# How Spark tells of a text that is no value of a type.
NOT_FITTING = re.compile(r"The value '(.*)' of the type")


@dataclass(frozen=True)
class Seeds:
    """Loads seeds, each only if its file or what is said of it has changed since."""

    compiled: Compiled
    spark: Spark
    tables: Tables

    def show_file(self, file: SeedFile) -> None:
        """Creates the view of the values of a file, as texts."""
        rows = read_csv(file.path, file.delimiter)
        self.spark.rows_view(file.view, rows.rows, ", ".join(f"{quoted(column)} string" for column in rows.columns))

    def build(self, node: Node, file: SeedFile) -> tuple[int, tuple[str, ...]]:
        """Loads a seed; returns the number of its rows, and notes for the user."""
        name, sql, refreshes = node.relation, self.compiled.nodes[node.name].sql, self.tables.refreshes
        mark = _mark(file, sql)
        if not refreshes.unfinished(name) and self.tables.mark(name) == mark and self.tables.table_view(name):
            return self.tables.count(name), ("unchanged since it was loaded",)
        self.show_file(file)
        # A table without a mark is loaded again.
        self.tables.write_mark(name, "")
        try:
            count = self.tables.replace(name, sql)
        except QueryFailed as failure:
            raise _in_file(failure, file) from failure
        self.tables.write_mark(name, mark)
        refreshes.done(name)
        return count, ()


def _in_file(failure: QueryFailed, file: SeedFile) -> QueryFailed:
    """The failure, with the line of the file that has the value which does not fit its type, if it is about one."""
    told, read = NOT_FITTING.search(failure.message), read_csv(file.path, file.delimiter)
    typed = [read.columns.index(column) for column in file.types]
    for row, line in zip(read.rows, read.lines):
        if told and told[1] in [row[number] for number in typed]:
            text = read_text(file.path)
            column = text.split("\n")[line - 1].find(told[1]) + 1
            shown = excerpt(Where(file.path, line, column or None), text, told[1] if column else "")
            return QueryFailed(f"{failure.message}\n{shown}")
    return failure


def _mark(file: SeedFile, sql: str) -> str:
    """What a table is loaded from."""
    content = hashlib.sha256(file.path.read_bytes())
    content.update(f"{file.delimiter}{sql}".encode())
    return content.hexdigest()
