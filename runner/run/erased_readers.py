"""The tables that read the changelogs of which a key is erased."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from runner.engine.erasures import KeyPart, of_tables
from runner.project.mirror import Mirror, MirroredTable, MirrorQuery
from runner.project.nodes import Node

if TYPE_CHECKING:
    from runner.run.run import Run

# Types whose values cast to the text that messages have.
EXACT = ("string", "tinyint", "smallint", "int", "bigint")
Columns = Mapping[str, KeyPart]


class Readers:
    """The readers of a table. `sources` maps changelogs to the names that the table has there; `parts` are those of the
    key. `note` is told of what cannot be built again.
    """

    def __init__(
        self,
        run: Run,
        sources: Mapping[str, Sequence[Sequence[str]]],
        parts: Sequence[KeyPart],
        note: Callable[[str], None],
    ) -> None:
        self.run, self.tables, self.storage = run, run.tables, run.tables.storage
        self.sources, self.parts, self.note = sources, parts, note

    def mirrors(self) -> list[tuple[Node, MirrorQuery]]:
        """Returns the mirrors of the table, and their histories."""
        nodes = [self.run.graph.nodes[name] for name in self.run.graph.order()]
        mirrors = [(node, node.model.query) for node in nodes if node.model]
        return [
            (node, query) for node, query in mirrors if isinstance(query, MirrorQuery) and self._reads(query.mirror)
        ]

    def _reads(self, mirror: Mirror) -> bool:
        """Returns True if a mirror reads the table, under a name that it has or had."""
        read = [
            (table, self.sources[model]) for table in mirror.tables if (model := table.source.model) in self.sources
        ]
        return any(of_tables([table.name, *self._called(mirror, table)], one) for table, names in read for one in names)

    def _called(self, mirror: Mirror, table: MirroredTable) -> list[tuple[str, ...]]:
        """Returns the names that a table of a mirror had."""
        seen = self.run.seen.of(table.source)
        if seen.statements < 0:
            return []
        for name in mirror.models:
            self.tables.changelog_view(name)
        return self.run.statements.names(mirror, table, seen)

    def built(self) -> list[Node]:
        """Returns the nodes whose tables may have rows of the table, parents first."""
        reached, found, mirrors = {*self.sources}, [], {node.name for node, _ in self.mirrors()}
        for name in self.run.graph.order():
            node = self.run.graph.nodes[name]
            if node.model is None or node.model.source or reached.isdisjoint(node.parents):
                continue
            if node.model.mirror and name not in mirrors:
                continue
            reached.add(name)
            if node.model.is_table and self.is_built(node) and not self._lacks_changes(node):
                found.append(node)
        return found

    def _lacks_changes(self, node: Node) -> bool:
        """Returns True, with a note, for an incremental model that cannot be built again of what is left."""
        if not node.model or node.model.mirror or not node.model.is_incremental:
            return False
        if self.run.reading.without_old_rows(self.run.reading.changelogs(node.name)):
            self.note(
                f"{node.name} is not built again, because old changes were removed: it may hold values of the key"
            )
            return True
        return False

    def is_built(self, node: Node) -> bool:
        return self.storage.has_table(node.relation)

    def in_place(self, node: Node) -> Columns | None:
        """Returns the columns by which the rows of the key can be removed from a table; None if it is built again."""
        query = node.model and node.model.query
        if not isinstance(query, MirrorQuery) or not self.storage.changes_rows:
            return None
        if not query.mirror.takes_increments or self.tables.refreshes.unfinished(query.model):
            return None
        if not self.storage.has_table(query.beside) or self.tables.progress(query.model).read() is None:
            return None
        return self.columns_of(query)

    def columns_of(self, query: MirrorQuery) -> Columns | None:
        """Returns the columns of a mirror that have the key; None if they are not all of its key, or if rows of another
        table may have the same key.
        """
        columns = {
            column.name: part
            for part in self.parts
            for column in query.mirror.key_columns
            if part.name in [one.lower() for one in (column.name, *column.sent_as)] and column.type in EXACT
        }
        is_whole = len(columns) == len(self.parts) and len(query.mirror.logged) == 1
        return columns if is_whole else None
