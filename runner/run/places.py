"""Where a query that failed is wrong: in the person's own file if that can be told, else in compiled SQL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from runner.compile.compiled import Compiled
from runner.engine.errors import QueryFailed, SqlPlace
from runner.errors import Where, excerpt
from runner.files import read_text
from runner.project.graph import Graph
from runner.project.nodes import Node, SqlFile, SqlText
from runner.project.templates import Templates

COMMAND_LINE = Path("--inline")


@dataclass(frozen=True)
class Query:
    """The SQL of a node; if it `is_increment`, that which runs once its table exists."""

    node: Node
    sql: str
    is_increment: bool


@dataclass(frozen=True)
class Places:
    """Finds places in the queries of a run. `compiled_path` is the file of a node's SQL, or of that of its increment.
    Several threads may ask.
    """

    graph: Graph
    compiled: Compiled
    templates: Templates
    compiled_path: Callable[[Node, bool], Path]
    tracing: threading.Lock = field(default_factory=threading.Lock)

    def of(self, node: Node, failure: QueryFailed) -> str:
        """The lines that follow what Spark says about a node's query: the file, and what stands there. Empty if nothing
        is known of the place.
        """
        if named := failure.place:
            for query in self._queries(node):
                if place := named.found_in(query.sql):
                    return f"\n{self._shown(query, place)}"
        return ""

    def _queries(self, node: Node) -> Iterator[Query]:
        """The queries that may have failed: that of the node, and those of the views that it reads, nearest first."""
        above = self.graph.upstream({node.name})
        views = [self.graph.nodes[name] for name in reversed(self.graph.order()) if name in above]
        for one in [node, *(view for view in views if view.model and not view.model.is_table)]:
            if found := self.compiled.nodes.get(one.name):
                if found.increment:
                    yield Query(one, found.increment, True)
                yield Query(one, found.sql, False)

    def _shown(self, query: Query, place: SqlPlace) -> str:
        source = query.node.model and query.node.model.query
        if isinstance(source, SqlText):
            return excerpt(Where(COMMAND_LINE, place.line, place.column), source.text, place.fragment)
        if isinstance(source, SqlFile) and (where := self._in_template(source.path, query, place)):
            return excerpt(where, read_text(where.path), place.fragment)
        where = Where(self.compiled_path(query.node, query.is_increment), place.line, place.column)
        return excerpt(where, query.sql, place.fragment)

    def _in_template(self, path: Path, query: Query, place: SqlPlace) -> Where | None:
        with self.tracing:
            trace = self.templates.trace(path, query.sql, query.is_increment)
        return trace.place(place.line, place.column) if trace else None
