"""The compiler of nodes: the SQL of models, data tests, cases and function tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from runner.compile.compiled import Compiled, CompiledCase, CompiledFunctionTest, CompiledNode, FunctionCase
from runner.compile.library import Library
from runner.compile.masks import check_functions
from runner.compile.query import compile_format
from runner.csv_text import read_csv, type_of
from runner.errors import Problems, RunnerError, Where, nearest_or_all
from runner.project.inputs import Source
from runner.project.mirror import MirrorQuery
from runner.project.nodes import (
    Case,
    DataTest,
    FunctionTest,
    Graph,
    Model,
    Node,
    SeedFile,
    SourcesView,
    UnitTest,
)
from runner.project.properties import rows
from runner.project.sources import read_source_format, read_tables
from runner.project.sql_functions import SqlFunction
from runner.project.templates import Templates
from runner.render import name as quoted
from runner.spec.formats import FormatFolders
from runner.spec.schemas import schemas_at
from runner.spec.values import read_zone
from runner.sql_text import folded
from runner.yaml_text import Yaml, read_yaml

CASE_KEYS = ("about", "source", "rows")
SOURCE_KEYS = ("zone", "format", "tables", "schema")
# Encoding -> the extension of the file with a case's messages; messages that are not text are lines of base64.
ENDINGS = {"json": "jsonl", "avro": "base64"}


class OnDemand(dict[str, CompiledNode]):
    """Compiled nodes. Some of the models are compiled when they are first asked for, in any thread."""

    def __init__(self, compiler: Compiler, later: Mapping[str, Node]) -> None:
        super().__init__()
        self.compiler, self.later = compiler, later

    def __missing__(self, name: str) -> CompiledNode:
        return self.setdefault(name, self.compiler.model(self.later[name]))


def compile_nodes(
    nodes: Iterable[Node],
    templates: Templates,
    formats: FormatFolders,
    library: Library,
    later: Container[str] = frozenset(),
) -> Compiled:
    """Compiles these nodes to SQL; raises all mistakes at once. Mirrors whose names are in `later` are compiled only
    when they are asked for.
    """
    nodes, compiler = list(nodes), Compiler(templates, formats, library)
    problems = Problems()
    compiled = OnDemand(compiler, {node.name: node for node in nodes if node.name in later})
    cases: dict[str, CompiledCase] = {}
    function_tests: dict[str, CompiledFunctionTest] = {}
    times: dict[str, tuple[datetime, datetime]] = {}
    for node in nodes:
        if node.name in compiled.later:
            continue
        began = datetime.now(timezone.utc)
        with problems.gathered():
            match node.subject:
                case Model():
                    compiled[node.name] = compiler.model(node)
                case DataTest() as test:
                    compiled[node.name] = library.complete(compiler.data_test(test))
                case UnitTest(file=Path() as path, overrides=overrides):
                    overridden = CompiledNode(templates.overridden_sql(path, overrides, node.where))
                    compiled[node.name] = library.complete(overridden)
                case Case() as case:
                    cases[node.name] = compiler.case(case)
                case FunctionTest() as test:
                    function_tests[node.name] = compile_function_test(test, library)
        times[node.name] = began, datetime.now(timezone.utc)
    problems.raise_if_any()
    return Compiled(compiled, cases, function_tests, times=times)


def with_queries_read(graph: Graph, nodes: Collection[Node]) -> list[Node]:
    """Returns the nodes, and the models upstream whose SQL a run may need: not those that land messages."""
    names = {node.name for node in nodes}
    upstream = (graph.nodes[name] for name in graph.upstream(names) - names)
    return [*nodes, *(node for node in upstream if node.model and not node.model.source)]


class Compiler:
    """Compiles nodes of all kinds: models, seeds, hooks, data tests, and cases of formats."""

    def __init__(self, templates: Templates, formats: FormatFolders, library: Library) -> None:
        self.templates, self.formats, self.library = templates, formats, library
        # The queries of formats for cases, each compiled once for all cases with the same settings.
        self.queries: dict[tuple[str, str], CompiledNode] = {}

    def model(self, node: Node) -> CompiledNode:
        """Returns the SQL of a model with the functions that it needs; raises `model-empty` for a file without any."""
        assert node.model
        return self.library.complete(self._model(node.model, node))

    def _model(self, model: Model, node: Node) -> CompiledNode:
        match model.query:
            case Source() as source:
                return self._source(source)
            case SourcesView(name=name, sources=sources):
                return CompiledNode(folded(self.templates.call(f"view_{name}", sources)))
            case MirrorQuery(shows=shows) as query:
                return CompiledNode(folded(self.templates.call(f"mirror_{shows}", query)))
            case str(sql):
                return CompiledNode(sql)
            case SeedFile() as file:
                return self._with_hooks(CompiledNode(self._seed(file)), model, node)
            case Path() as path:
                sql = self.templates.sql(path)
                if not sql.strip():
                    raise RunnerError("model-empty", f'the model "{node.name}" has no SQL', node.where)
                increment = self.templates.sql(path, is_incremental=True) if model.is_incremental else None
                return self._with_hooks(CompiledNode(sql, increment=increment), model, node)

    def _source(self, source: Source) -> CompiledNode:
        check_functions(source.masked, self.library)
        call, spec, name, zone, tables = self.templates.call, source.format, source.name, source.zone, source.tables
        return compile_format(call, spec, name, zone, tables, None, source.generation, source.raw.which)

    def _seed(self, file: SeedFile) -> str:
        """Returns the SQL of a seed; raises `column-unknown` for a type of a column that the file does not have."""
        rows = read_csv(file.path, file.delimiter)
        for column in file.types:
            if column not in rows.columns:
                hint = nearest_or_all(column, rows.columns)
                raise RunnerError("column-unknown", f'there is no column "{column}"', Where(file.path, 1), hint)
        types = [
            file.types.get(column) or type_of(row[number] for row in rows.rows)
            for number, column in enumerate(rows.columns)
        ]
        return self.templates.call("seed_rows", file.view, dict(zip(rows.columns, types)))

    def _with_hooks(self, compiled: CompiledNode, model: Model, node: Node) -> CompiledNode:
        before, after = (self._statements(one, model, node) for one in (model.pre_hook, model.post_hook))
        return replace(compiled, pre_hook=before, post_hook=after)

    def _statements(self, templates: Iterable[str], model: Model, node: Node) -> tuple[str, ...]:
        """Returns the statements of a hook that are not empty. They name a table as other sessions know it too."""
        this = self.templates.table(node.relation) if model.is_table else quoted(node.relation)
        texts = (self.templates.expand(text, node.where or Where(Path(node.path)), this)[0] for text in templates)
        return tuple(text for text in texts if text.strip())

    def data_test(self, test: DataTest) -> CompiledNode:
        """Returns the SQL that selects the rows that fail a data test."""
        if test.source:
            return CompiledNode(self.templates.call("test_conserved", test.source))
        if test.file:
            sql = self.templates.singular_test_sql(test.file)
        else:
            sql = self.templates.test_sql(test.kind, test.model, test.arguments, test.config.where)
        limit = test.config.limit
        return CompiledNode(sql if limit is None else self.templates.call("first_rows", sql.rstrip(), limit))

    def case(self, case: Case) -> CompiledCase:
        """Returns the case of a `NAME.rows.yml` and the messages beside it; raises mistakes in it or its format."""
        yaml = read_yaml(case.path).only(CASE_KEYS)
        query = self._query(case.format, yaml)
        name = case.path.name.removesuffix(".rows.yml")
        messages = case.path.with_name(f"{name}.messages.{ENDINGS[query.encoding]}")
        records = case.path.with_name(f"{name}.records.jsonl")
        if records.is_file() and query.encoding == "json":
            messages = records
        if not messages.is_file():
            raise yaml.error("case-messages", f'the case "{name}" has no messages', f"they belong in {messages.name}")
        return CompiledCase(query, f"{case.format}_messages", messages, rows(yaml))

    def _query(self, format_name: str, case: Yaml) -> CompiledNode:
        source = case["source"].only(SOURCE_KEYS) if case.get("source") else Yaml({}, case.places)
        settings = (format_name, repr(source.value))
        if settings not in self.queries:
            named = source["schema"].as_list() if source.get("schema") else ()
            schemas = schemas_at([(one.where().path.parent / one.text(), one.where()) for one in named])
            written = source.get("format") or Yaml(format_name, case.places)
            spec = read_source_format(written, self.formats, format_name, schemas)
            zone, tables = read_zone(source.get("zone")), read_tables(source.get("tables"))
            # Queries of several cases run at once in a session, beside those of sources: their names must differ.
            prefix = f"{format_name} case {len(self.queries)}"
            query = compile_format(self.templates.call, spec, format_name, zone, tables, prefix)
            self.queries[settings] = self.library.complete(query)
        return self.queries[settings]


KEYS = ("given", "expect")


def compile_function_test(test: FunctionTest, library: Library) -> CompiledFunctionTest:
    """Returns the tests of a function; raises `function-unknown`, and all mistakes in the arguments of the tests."""
    function = library.find(test.function)
    if function is None:
        hint = nearest_or_all(test.function, (one.name for one in library.all()))
        raise test.tests.error("function-unknown", f'there is no SQL function "{test.function}"', hint)
    problems, cases = Problems(), []
    for entry in test.tests.list().elements():
        with problems.gathered():
            cases.append(_case(entry, function))
    problems.raise_if_any()
    return CompiledFunctionTest(function, test.tests.where().path, tuple(cases))


def _case(entry: Yaml, function: SqlFunction) -> FunctionCase:
    entry.only(KEYS)
    for key in KEYS:
        if not entry.get(key):
            raise entry.error("unit-test-missing", f'a test of a function needs "{key}"')
    given = entry["given"].list().elements()
    takes = [argument.name for argument in function.arguments]
    if len(given) != len(takes):
        message = f'"{function.name}" takes {len(takes)} arguments, and {len(given)} are given'
        raise entry["given"].error("unit-test-given", message, f"arguments: {', '.join(takes) or 'none'}")
    return FunctionCase(tuple(one.value for one in given), entry["expect"].value)


# Spark plans and compiles queries of many hundred columns slowly.
MOST = 100


def queries_together(nodes: Iterable[Node], templates: Templates) -> dict[str, str]:
    """Returns, for each data test, a query that tells of this test and of others whether any row fails. Tests share a
    query if they look at the same rows and wait for the same nodes. Tests that store failures, or judge their number,
    need the rows and have no such query.
    """
    groups: dict[tuple[str, str, tuple[str, ...]], dict[str, str]] = defaultdict(dict)
    for node in nodes:
        test = node.data_test
        if test and _only_fails(test) and (passing := templates.passing(test)):
            groups[test.model, test.config.where, node.parents][node.name] = passing
    return {
        name: sql
        for (model, where, _), passing in groups.items()
        for part in _parts(passing)
        for sql in [templates.tested_together(model, where, part)]
        for name in part
    }


def _only_fails(test: DataTest) -> bool:
    return test.config.counts_rows and not test.config.store_failures


def _parts(passing: dict[str, str]) -> Iterator[dict[str, str]]:
    """Returns the aggregates in groups, each as large as one query takes; none is alone in a group."""
    items = list(passing.items())
    for first in range(0, len(items), MOST):
        if len(part := items[first : first + MOST]) > 1:
            yield dict(part)
