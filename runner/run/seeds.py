"""Seeds: tables of the rows of files that are part of the project."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from runner.compile.compiled import Compiled
from runner.csv_text import read_csv
from runner.engine.session import Spark
from runner.engine.tables import Tables
from runner.project.nodes import Node, SeedFile
from runner.render import name as quoted


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
        count = self.tables.replace(name, sql)
        self.tables.write_mark(name, mark)
        refreshes.done(name)
        return count, ()


def _mark(file: SeedFile, sql: str) -> str:
    """What a table is loaded from."""
    content = hashlib.sha256(file.path.read_bytes())
    content.update(f"{file.delimiter}{sql}".encode())
    return content.hexdigest()
