"""The calls in a template, if they are known without rendering it: most models only name what they read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jinja2.nodes as syntax


@dataclass(frozen=True)
class Call:
    """A call with constant arguments, and its line."""

    function: str
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]
    line: int


class _NotConstant(Exception):
    """Only rendering shows what the template does."""


def constant_calls(tree: syntax.Template, functions: Collection[str]) -> list[Call] | None:
    """The calls in a template that only calls these functions with constants, names `this` and tests
    `is_incremental()`; None for any other template.
    """
    try:
        return [call for node in tree.body for call in _calls_of_statement(node, functions)]
    except _NotConstant:
        return None


def _calls_of_statement(node: syntax.Node, functions: Collection[str]) -> Iterator[Call]:
    """All calls in a statement, in their order."""
    match node:
        case syntax.Output():
            for expression in node.nodes:
                yield from _calls_of_expression(expression, functions)
        case syntax.If() if _is_incremental_test(node.test):
            for inner in (*node.body, *node.elif_, *node.else_):
                yield from _calls_of_statement(inner, functions)
        case _:
            raise _NotConstant


def _calls_of_expression(expression: syntax.Expr, functions: Collection[str]) -> Iterator[Call]:
    match expression:
        case syntax.TemplateData() | syntax.Name(name="this"):
            return
        case syntax.Call(node=syntax.Name(name=function), dyn_args=None, dyn_kwargs=None):
            if function in functions:
                try:
                    arguments = tuple(one.as_const() for one in expression.args)
                    named = {one.key: one.value.as_const() for one in expression.kwargs}
                except syntax.Impossible:
                    raise _NotConstant from None
                yield Call(function, arguments, named, expression.lineno)
                return
    raise _NotConstant


def _is_incremental_test(test: syntax.Node) -> bool:
    match test:
        case syntax.Not():
            return _is_incremental_test(test.node)
        case syntax.Call(node=syntax.Name(name="is_incremental"), args=[], kwargs=[]):
            return True
    return False
