"""What each kind of node does: streams, views, tables, tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runner.engine.catalog import CatalogPublisher
from runner.engine.errors import QueryFailed
from runner.engine.maintenance import Maintenance
from runner.engine.messages import messages_view, source_view
from runner.engine.session import Spark
from runner.engine.tables import Tables
from runner.functions.avro.files import FileMessage
from runner.project.graph import Graph
from runner.project.nodes import Case, DataTest, Model, Node, Source, UnitTest
from runner.run.compare import case_row, in_any_order, in_order
from runner.run.documents import messages_of
from runner.run.landing import Landing
from runner.run.schedule import Listener, Result, Schedule

SHOWN_FAILURES = 10


@dataclass
class Execution:
    """One run in one session, whose views all threads share. `compiled_path` is where a node's SQL was written."""

    graph: Graph
    spark: Spark
    tables: Tables
    landing: Landing
    publishing: CatalogPublisher
    compiled_path: Callable[[Node], Path]
    prepared: set[str] = field(default_factory=set)
    case_rows: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)
    preparing: threading.RLock = field(default_factory=threading.RLock)

    def run(self, names: Iterable[str], listener: Listener, threads: int, fail_fast: bool = False) -> list[Result]:
        """The results, one a node, in the order in which they came."""
        chosen = list(names)
        self.cases = [node for name in chosen if isinstance((node := self.graph.nodes[name]).about, Case)]
        return Schedule(
            self.graph,
            chosen,
            lambda node: self._timed(node, self._do),
            self.spark.cancel,
            listener,
            threads,
            fail_fast,
        ).run()

    def maintain(self, nodes: Iterable[Node], maintenance: Maintenance, listener: Listener) -> list[Result]:
        """Looks after the tables of models, one after the other."""
        results: list[Result] = []
        for number, node in enumerate(chosen := list(nodes), 1):
            listener.started(node, number, len(chosen))
            results.append(
                self._timed(
                    node,
                    lambda node: Result(
                        node.name,
                        "model",
                        "success",
                        notes=maintenance.maintain(node.name, node.about.source is not None),
                    ),
                )
            )
            listener.finished(node, results[-1], number, len(chosen))
        return results

    def _timed(self, node: Node, action: Callable[[Node], Result]) -> Result:
        began = time.monotonic()
        try:
            result = action(node)
        except QueryFailed as failure:
            result = self.failed(node, failure)
        return replace(result, seconds=time.monotonic() - began)

    def failed(self, node: Node, failure: QueryFailed) -> Result:
        place = f"\n  --> {self.compiled_path(node)}:{failure.line}:{failure.column}" if failure.line else ""
        return Result(node.name, node.resource_type, "error", f"{failure.message}{place}")

    def _do(self, node: Node) -> Result:
        match node.about:
            case Model() as model:
                result = self._land(node) if model.source else self._build(node)
                self.publishing.publish(node.name)
                return result
            case DataTest():
                return self._data_test(node)
            case UnitTest():
                return self._unit_test(node)
            case Case():
                return self._case(node)
        raise AssertionError(node)

    # --- what a node reads

    def prepare(self, name: str) -> None:
        """Makes the views of all that a node reads and that this run has not built."""
        needed = self._needed(name, lambda model: model.materialized == "view")
        with self.preparing:
            for parent in self._unprepared(needed):
                self.prepared.add(parent)
                self.view_of(self.graph.nodes[parent])

    def _unprepared(self, needed: set[str]) -> list[str]:
        """Of what is needed, what has no view yet in this run, parents first."""
        missing = needed - self.prepared
        return [name for name in self.graph.order() if name in missing]

    def _needed(self, name: str, is_query: Callable[[Model], bool]) -> set[str]:
        """What must be there for a node to be read: behind a table nothing, behind a query what it reads in turn."""
        needed: set[str] = set()
        about = self.graph.nodes[name].about
        edge = set() if isinstance(about, Model) and about.source else set(self.graph.nodes[name].parents)
        while edge:
            needed |= edge
            queries = {
                n for n in edge if isinstance(self.graph.nodes[n].about, Model) and is_query(self.graph.nodes[n].about)
            }
            edge = {p for n in queries for p in self.graph.nodes[n].parents} - needed
        return needed

    def view_of(self, node: Node) -> None:
        """Makes the view of a node as it was left by the last run."""
        match node.about:
            case Source() as source:
                source_view(
                    self.spark,
                    source.messages,
                    self.landing.reads(source.messages),
                    f"{source.name}_messages",
                    streaming=False,
                )
            case Model(source=Source()):
                self.tables.changelog_view(node.name)
            case Model(materialized="view") as model:
                self.tables.view(node.name, model.sql)
            case Model():
                if not self.tables.table_view(node.name):
                    raise QueryFailed(f'"{node.name}" has not been built yet: runner run -s {node.name}')

    # --- models

    def _build(self, node: Node) -> Result:
        model: Model = node.about
        self.prepare(node.name)
        self.prepared.add(node.name)
        if model.materialized == "view":
            self.tables.view(node.name, model.sql)
            return Result(node.name, "model", "success")
        if model.increment and not self.landing.full_refresh and self.tables.table_view(node.name):
            rows = self.tables.apply_increment(
                node.name, model.increment.sql, model.increment.key, model.increment.on_schema_change
            )
        else:
            rows = self.tables.replace(node.name, model.sql)
        return Result(node.name, "model", "success", rows={"rows": rows})

    def _land(self, node: Node) -> Result:
        landed, notes = self.landing.land(node)
        self.prepared.add(node.name)
        self.tables.changelog_view(node.name)
        return Result(node.name, "model", "success", notes=notes, rows={"messages": landed.messages, **landed.rows})

    # --- tests

    def _data_test(self, node: Node) -> Result:
        test: DataTest = node.about
        self.prepare(node.name)
        notes = self.landing.read_again(test.source) if test.source else ()
        columns, failing = self.spark.rows(test.sql, SHOWN_FAILURES)
        failures = self.spark.count(test.sql) if len(failing) == SHOWN_FAILURES else len(failing)
        status = ("fail" if test.severity == "error" else "warn") if failures else "warn" if notes else "pass"
        shown = [", ".join(f"{c}: {row[c]}" for c in columns if row[c] is not None) for row in failing]
        return Result(
            node.name, "test", status, f"{failures} failing rows" if failures else "", (*notes, *shown), failures
        )

    def _unit_test(self, node: Node) -> Result:
        test: UnitTest = node.about
        model = self.graph.nodes[test.model]
        session = self.spark.fresh()
        self._shapes(test.model)
        for name, rows in test.given.items():
            self.spark.given_rows(session, name, rows)
        columns, got = session.rows(model.about.sql)
        named = list(dict.fromkeys(key for row in test.expect for key in row)) or columns
        unknown = [c for c in named if c not in columns]
        if unknown:
            raise QueryFailed(
                f'rows are expected with a column "{unknown[0]}", which the model does not have: {", ".join(columns)}'
            )
        expected = [{c: row.get(c) for c in named} for row in test.expect]
        return _compared(node, in_any_order([{c: row[c] for c in named} for row in got], expected))

    def _shapes(self, name: str) -> None:
        """Makes the views that a model reads, for their columns: a table that may not have been built is stood in for
        by its query.
        """
        needed = self._needed(name, lambda model: model.source is None)
        with self.preparing:
            for parent in self._unprepared(needed):
                node = self.graph.nodes[parent]
                if isinstance(node.about, Model) and node.about.materialized in ("table", "incremental"):
                    self.tables.view(parent, node.about.sql)
                else:
                    self.view_of(node)

    def _case(self, node: Node) -> Result:
        case: Case = node.about
        if case.query.sql not in self.case_rows:
            self.case_rows[case.query.sql] = self._rows_of_cases(
                [n for n in self.cases if n.about.query.sql == case.query.sql]
            )
        return _compared(node, in_order(self.case_rows[case.query.sql][node.name], case.rows))

    def _rows_of_cases(self, nodes: list[Node]) -> dict[str, list[dict[str, Any]]]:
        """The rows of all cases that share a query, from one job."""
        owners: list[str] = []
        messages: list[FileMessage] = []
        first: Case = nodes[0].about
        for node in nodes:
            own = messages_of(node.about.messages.name, node.about.messages.read_bytes(), first.query.encoding)
            messages += own
            owners += [node.name] * len(own)
        session = self.spark.fresh()
        messages_view(session, messages, first.query.encoding, first.view)
        session.register(first.query.functions)
        out: dict[str, list[dict[str, Any]]] = {node.name: [] for node in nodes}
        for row in session.rows(first.query.sql)[1]:
            out[owners[row["seq"]["arrival"][0]]].append(row)
        return {
            name: [case_row(r) for r in sorted(rows, key=lambda r: (r["seq"]["arrival"], r["seq"]["row"]))]
            for name, rows in out.items()
        }


def _compared(node: Node, found: list[str]) -> Result:
    return Result(
        node.name,
        "unit_test",
        "fail" if found else "pass",
        f"{len(found)} differences" if found else "",
        tuple(found[:SHOWN_FAILURES]),
        len(found),
    )
