"""The compiler of test cases: the messages and rows of formats' cases, and the queries that they test."""

from __future__ import annotations

from runner.compile.compiled import CompiledCase, CompiledFunctionTest, CompiledNode, FunctionCase, Print
from runner.compile.library import Library
from runner.compile.query import compile_format
from runner.errors import Problems, nearest_or_all
from runner.project.nodes import Case, FunctionTest
from runner.project.properties import rows
from runner.project.sources import read_source_format, read_tables
from runner.project.sql_functions import SqlFunction
from runner.spec.formats import FormatFolders
from runner.spec.schemas import schemas_at
from runner.spec.values import read_zone
from runner.yaml_text import Yaml, read_yaml

CASE_KEYS = ("about", "source", "rows")
SOURCE_KEYS = ("zone", "format", "tables", "schema")
# Encoding -> the extension of the file with a case's messages; messages that are not text are lines of base64.
ENDINGS = {"json": "jsonl", "avro": "base64"}


class Cases:
    """Compiles the query of each format once for all cases with the same settings."""

    def __init__(self, macro: Print, formats: FormatFolders, library: Library) -> None:
        self.macro, self.formats, self.library = macro, formats, library
        self.queries: dict[tuple[str, str], CompiledNode] = {}

    def compile(self, case: Case) -> CompiledCase:
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
            query = compile_format(self.macro, spec, format_name, zone, tables, prefix)
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
