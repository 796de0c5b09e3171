"""The copy of a project's tables from one target into another: which tables, in which order, and what is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runner.engine.copies import Copies, Sum, Table, check_whole
from runner.engine.progress import TablesWritten
from runner.engine.tables import Tables
from runner.errors import Problems, RunnerError
from runner.files import is_uri, write_whole
from runner.project.inputs import Target
from runner.project.mirror import MirrorQuery
from runner.project.nodes import Model, Node
from runner.project.tables_seen import path_of_seen
from runner.run.run import Run
from runner.run.verified import COLUMNS as VERIFIED
from runner.run.workspace import Workspace

if TYPE_CHECKING:
    from runner.engine.session import Spark

DIFFERS = "differs"
BUILT = "built from its changes"
Row = Mapping[str, Any]


class Copying:
    """Copies the tables of a run's nodes from the target `own` into that of another workspace of the same project; if
    `is_whole`, also those in which `runner verify` keeps what it has found. The session of Spark is of the other
    target, and has the settings of both.
    """

    def __init__(self, run: Run, there: Workspace, spark: Spark, own: Target, is_whole: bool) -> None:
        self.run, self.there = run, there
        run.spark = spark
        self.own, self.other = Tables(spark, run.macro, target=own), Tables(spark, run.macro)
        self.copies = Copies(self.own, self.other)
        self.lost = self.own.storage.types_kept_as.keys() - self.other.storage.types_kept_as.keys()
        self.kinds: dict[str, str] = {}
        # Mirrors that the other storage keeps together with a table that this one does not have.
        self.to_build: list[Node] = []
        self.tables = [*self._tables(), *(self._kept(name, "verify") for name in VERIFIED if is_whole)]
        self.tables = [table for table in self.tables if table.source or self.own.storage.has_table(table.name)]
        names = {table.name for table in self.tables}
        self.to_build = [node for node in self.to_build if node.relation in names]

    def _tables(self) -> Iterator[Table]:
        """Yields the tables of the nodes, changelogs first: what is recorded of others names them."""
        for node in sorted(self.run.nodes, key=lambda node: not (node.model and node.model.source)):
            self.kinds[node.relation] = node.model.makes if node.model else "test"
            if node.model and (source := node.model.source):
                name = node.relation
                if self.own.checkpoint(name).newest_plan >= 0 or self.own.storage.has_rows(name):
                    yield Table(name, source)
                continue
            yield from self._of_model(self.there.graph.nodes.get(node.name, node))

    def _of_model(self, node: Node) -> Iterator[Table]:
        name, model = node.relation, node.model
        if not model:
            yield Table(name)
        elif isinstance(model.query, MirrorQuery):
            query, beside = model.query, model.query.beside
            is_often = self.other.storage.changes_rows and query.mirror.takes_increments
            types = self._lost({column.name: column.type for column in query.mirror.columns})
            yield Table(name, layout=query.layout, is_changed_often=is_often, types=types)
            if is_often and self.own.storage.has_table(beside):
                self.kinds[beside] = "beside a mirror"
                yield Table(beside, is_changed_often=True)
            elif is_often:
                self.to_build.append(node)
        elif model.is_incremental:
            yield Table(name, layout=model.layout, mark=model.layout.order, types=self._types_of_query(node, model))
        else:
            yield Table(name, layout=model.layout)

    def _lost(self, types: Mapping[str, str]) -> dict[str, str]:
        """Returns the columns whose types only the other storage has."""
        return {column: kind for column, kind in types.items() if kind in self.lost}

    def _types_of_query(self, node: Node, model: Model) -> dict[str, str]:
        """Returns the columns of an incremental model whose types only the other storage has."""
        if not self.lost or not self.own.storage.has_table(node.relation):
            return {}
        shapes, view = self.run.shapes, f"{node.relation}__shape"
        shapes.prepare_shapes(node.name)
        shapes.show_as_new(node.name, model)
        shapes.tables.view(view, self.run.compiled.nodes[node.name].sql)
        return self._lost(shapes.tables.types(view))

    def _kept(self, name: str, kind: str) -> Table:
        self.kinds[name] = kind
        return Table(name)

    def check(self) -> None:
        """Raises all that keeps the tables from being copied."""
        check_whole(self.own)
        problems = Problems()
        with problems.gathered():
            self.copies.check(self.tables)
        for table in self.tables:
            with problems.gathered():
                self._check_read(table)
        problems.raise_if_any()

    def _check_read(self, table: Table) -> None:
        """Raises `copy-incomplete` if a table has read a changelog that is not copied with it: it could not go on with
        another one.
        """
        read = {} if table.source else self.copies.positions(table.name) or {}
        for changelog in sorted(read.keys() - {one.name for one in self.tables}):
            if read[changelog].table and read[changelog].table == self.own.storage.identity(changelog):
                what = (
                    f'"{table.name}" has read "{changelog}", which is not selected, and goes on only with a copy of it'
                )
                raise RunnerError("copy-incomplete", what, hint=f"-s +{table.name}")

    def looked_at(self) -> Iterator[Row]:
        """Yields a row for each table that would be copied."""
        for table in self.tables:
            yield self._row(table, self.copies.sum_of(table, self.own), "would be copied")

    def copied(self) -> Iterator[Row]:
        """Copies the tables; yields a row for each. If one differs, the copy counts as interrupted."""
        self.copies.begin(self.tables, self.run.command)
        TablesWritten(self.there.project).add(table.name for table in self.tables)
        built = {node.relation for node in self.to_build}
        are_alike = True
        for table in (table for table in self.tables if table.name not in built):
            own, other = self.copies.copy(table)
            are_alike &= own == other
            yield self._row(table, own, _difference(own, other))
        self._copy_records()
        for row in self._built():
            are_alike &= not row["note"].startswith(DIFFERS)
            yield row
        if are_alike:
            self.copies.end()

    def _copy_records(self) -> None:
        """Copies what is recorded of sources beside their tables, and schemas of a registry."""
        for source in (table.source for table in self.tables if table.source):
            self.copies.copy_results(source)
            text = self.copies.copy_seen(source)
            if text and is_uri(self.other.target.path):
                # Commands without Spark read the tables there.
                write_whole(path_of_seen(self.there.project, source.name), text)
        if self.own.target.schemas and self.other.target.schemas:
            self.copies.copy_folder(self.own.target.schemas, self.other.target.schemas)

    def _built(self) -> Iterator[Row]:
        """Builds mirrors in the other target, from the changes that were copied; yields a row for each."""
        # The other target knows the mirrors that rules make only now.
        run = Run(Workspace(self.there.arguments), "copy", [])
        run.nodes = [run.graph.nodes[node.name] for node in self.to_build]
        run.spark = self.other.spark
        for node in run.nodes:
            assert node.model and isinstance(node.model.query, MirrorQuery)
            table = Table(node.relation)
            run.views.prepare(node.name)
            run.mirrors.build(node.model.query)
            own, other = (self.copies.sum_of(table, of) for of in (self.own, self.other))
            recorded = self.other.progress(table.name).recorded()
            has_read_more = recorded is not None and recorded.read != self.copies.positions(table.name)
            note = BUILT if own == other or has_read_more else _difference(own, other)
            yield self._row(table, other, note)

    def _row(self, table: Table, sums: Sum, note: str) -> Row:
        return {"table": table.name, "kind": self.kinds[table.name], **sums._asdict(), "note": note}


def _difference(own: Sum, other: Sum) -> str:
    return "" if own == other else f"{DIFFERS}: {other.rows} rows with the hash {other.hash}"
