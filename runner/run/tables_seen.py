"""Looks at what has landed for the tables that a source tells of, and records them for later runs."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from runner.engine.tables import Tables
from runner.files import is_uri, write_whole
from runner.project.inputs import Place, Source
from runner.project.mirror import Mirror, MirrorQuery
from runner.project.tables_seen import TRIED, TablesSeen, path_of_seen, with_new
from runner.run.statements import renamed_columns
from runner.run.workspace import Workspace

if TYPE_CHECKING:
    from runner.run.run import Run


# So many changes of a table show whether the values of its columns fit their types. Looking at more of a large table
# would take about as long as landing it.
ENOUGH = 50_000
ALL = 2**62


class SeenByRun:
    """The tables seen of the sources of a run, each read once."""

    def __init__(self, run: Run) -> None:
        self.tables, self.project, self.workspace = run.tables, run.project, run.workspace
        self.known: dict[str, TablesSeen] = {}
        self.has_changed = False
        # Mirrors of one source are built in several threads: one of them looks, and the others wait for it.
        self.looking, self.reading = Lock(), Lock()

    def of(self, source: Source) -> TablesSeen:
        """Returns the tables seen of a source as they were last recorded; raises Damaged."""
        if source.name not in self.known:
            path, files = self._path(source), self.tables.files
            recorded = TablesSeen.read(files.read(path), path) if files.exists(path) else TablesSeen(source.name)
            self.known[source.name] = recorded
        return self.known[source.name]

    def look(self, source: Source) -> TablesSeen:
        """Looks at what has landed since the record was written, and writes it again. A changelog of another target is
        not looked at.
        """
        with self.looking:
            before = self.of(source)
            if source.model in self.tables.borrowed:
                return before
            # Only rules choose types of columns.
            enough = ENOUGH if any(rule.source.name == source.name for rule in self.workspace.mirrors.rules) else 0
            after = self.known[source.name] = looked_at(self.tables, source.model, before, enough=enough)
            if after != before:
                self.has_changed |= after.told() != before.told()
                self._write(source, after)
            return after

    def with_statements(self, mirror: Mirror) -> list[tuple[str, tuple[Place, ...]]]:
        """Returns the models of a mirror in which statements may have landed, each with the places after which they
        count: all but those of which the record of all that has landed says that there are none.
        """
        without = {table.source.model for table in mirror.tables if self._has_no_statements(table.source)}
        return [(model, after) for model, after in mirror.statements_read.items() if model not in without]

    def _has_no_statements(self, source: Source) -> bool:
        position, seen = self.tables.position(source.model), self.of(source)
        is_current = position is not None and (position.table, position.batch) == (seen.table, seen.batch)
        return is_current and seen.statements < 0

    def _write(self, source: Source, seen: TablesSeen) -> None:
        self.tables.files.write(self._path(source), seen.text())
        if is_uri(self.tables.target.path):
            # Commands without Spark read the tables there.
            write_whole(path_of_seen(self.project, source.name), seen.text())

    def current(self, query: MirrorQuery) -> MirrorQuery:
        """Returns the query of a mirror as its rule, if a rule makes it, says now."""
        if query.model not in self.workspace.mirrors.by_rule:
            return query
        node = self.project_now().graph.nodes.get(query.model)
        now = node.model.query if node and node.model else query
        return now if isinstance(now, MirrorQuery) else query

    def project_now(self) -> Workspace:
        """Returns the project as it is after what this run has seen."""
        with self.reading:
            if self.has_changed:
                self.workspace, self.has_changed = Workspace(self.workspace.arguments), False
            return self.workspace

    def _path(self, source: Source) -> str:
        return f"{self.tables.target.at('_tables_seen')}/{source.name}.json"


def looked_at(
    tables: Tables, model: str, before: TablesSeen, of_table: tuple[str, ...] = (), enough: int = ALL
) -> TablesSeen:
    """Returns the tables seen after what has landed since; `model` lands the messages of their source. The values of
    new columns are looked at in about `enough` changes of each table whose name ends with `of_table`. Raises
    QueryFailed.
    """
    now = tables.position(model)
    if now is None or (now.table, now.batch) == (before.table, before.batch):
        return before
    if now.table != before.table or tables.checkpoint(model).again().replaced_between(before.batch, now.batch):
        # All has landed again, or some rows were replaced. A table of which nothing comes this time is still known.
        kept = (replace(one, changes=0, without_key=0, partial=0, batch=-1) for one in before.tables)
        before = TablesSeen(before.source, tables=tuple(kept))
    batches = (model, before.batch, now.batch)
    after = with_new(before, tables.spark.rows(tables.macro("tables_landed", *batches))[1], now.table, now.batch)
    if after.statements > before.statements:
        told = tables.spark.rows(tables.macro("statements_told", [(model, ())]))[1]
        after = after.renamed(renamed_columns(row for row in told if before.batch < row["batch"] <= now.batch))
    had = {(one.names, column.name) for one in before.tables for column in one.columns}
    new = {
        one.names: {column.name for column in one.columns if column.type and (one.names, column.name) not in had}
        for one in after.tables
    }
    looked = [one.names for one in after.tables if new[one.names] and one.ends_with(of_table)]
    if not looked or not enough:
        return after
    changes = {one.names: one.changes for one in after.tables}
    asked = [(names, max(1, changes[names] // enough)) for names in looked]
    found: dict[tuple[str, ...], dict[str, dict[str, object]]] = {names: {} for names in looked}
    for row in tables.spark.rows(tables.macro("values_landed", *batches, TRIED, asked))[1]:
        names = tuple(row["names"])
        if row["column"] in new.get(names, ()):
            found[names][row["column"]] = row
    with_values = (one.with_values(found.get(one.names, {})) for one in after.tables)
    return replace(after, tables=tuple(with_values))
