"""Incremental models: tables that take in what is new, each row once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runner.compile.compiled import Compiled
from runner.engine.errors import QueryFailed
from runner.engine.progress import Position, Positions, Progress
from runner.engine.tables import Tables
from runner.errors import full_refresh
from runner.project.nodes import Model, Node
from runner.run.landing import finishes
from runner.run.reading import Reading, landed_again, reading_until


@dataclass(frozen=True)
class Increments:
    """Builds incremental models, and remembers what of each changelog they have read."""

    reading: Reading
    compiled: Compiled
    tables: Tables
    run_id: str

    def build(self, node: Node, model: Model) -> tuple[int, tuple[str, ...]]:
        """Builds the table or adds what is new to it; returns the number of its rows, and notes for the user. Raises
        QueryFailed.
        """
        name, compiled, seen = node.relation, self.compiled.nodes[node.name], self.reading.changelogs(node.name)
        refreshes, progress = self.tables.refreshes, self.tables.progress(name)
        self.tables.storage.recover(name)
        begun = self.tables.begun_refresh(name)
        if begun or not self.tables.table_view(name):
            until = reading_until(seen, {})
            self.reading.show_new_rows(node.name, model.new_rows, {}, until)
            with progress.writing(until):
                # Before the table: a table that is there and was to be replaced is built again by the next run.
                if self.tables.mark(name) != model.layout.order:
                    self.tables.write_mark(name, model.layout.order)
                promised = self.tables.promised(name, compiled.sql, model.contract)
                count = self.tables.replace_keyed(name, promised, model.unique_key, model.layout)
            refreshes.done(name)
            return count, finishes(begun, self.run_id)
        since = self._since(node, seen, progress)
        self._check_order(node, model.layout.order)
        until = reading_until(seen, since)
        self.reading.show_new_rows(node.name, model.new_rows, since, until)
        with progress.writing(until):
            sql = self.tables.promised(name, compiled.increment or compiled.sql, model.contract)
            count = self.tables.apply_increment(
                name, sql, model.unique_key, model.on_schema_change, model.layout, model.replaces_partitions
            )
        return count, ()

    def _check_order(self, node: Node, order: str) -> None:
        """Raises QueryFailed if the table keeps other rows together than its settings now say."""
        built = self.tables.mark(node.relation)
        if built != order:
            changed = f"{built or 'has neither partitions nor clusters'}; now {order or 'it is to have none'}"
            again = f"{full_refresh(node.name)} builds it again"
            raise QueryFailed(f'the table "{node.relation}" {changed}: {again}')

    def _since(self, node: Node, seen: Mapping[str, Position | None], progress: Progress) -> Positions:
        """How far the table has read; raises QueryFailed if its rows cannot be those of these changelogs."""
        again = f"{full_refresh(node.name)} builds it again"
        since = progress.read()
        if since is None:
            raise QueryFailed(f'it is not known what "{node.name}" has read: {again}')
        if changelog := landed_again(since, seen):
            raise QueryFailed(f'"{changelog}" has landed everything again since "{node.name}" was built: {again}')
        return since
