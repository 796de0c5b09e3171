"""Unit tests of SQL functions -> the calls that they make, checked against the functions."""

from __future__ import annotations

from runner.compile.compiled import CompiledFunctionTest, FunctionCase
from runner.compile.library import Library
from runner.errors import Problems, nearest_or_all
from runner.project.nodes import FunctionTest
from runner.project.sql_functions import SqlFunction
from runner.yaml_text import Yaml

KEYS = ("given", "expect")


def compile_function_test(test: FunctionTest, library: Library) -> CompiledFunctionTest:
    """The tests of a function; raises `function-unknown`, and all mistakes in what it is given."""
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
