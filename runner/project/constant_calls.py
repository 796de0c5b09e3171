"""What a template calls, where that is known without rendering it: most models only name what they read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jinja2.nodes as syntax


@dataclass(frozen=True)
class Call:
    """A call with constants, and the line where it stands."""

    function: str
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]
    line: int


class _NotConstant(Exception):
    """The template does something that only rendering can tell."""


def constant_calls(tree: syntax.Template, functions: Collection[str]) -> list[Call] | None:
    """The calls in a template that does nothing but call these functions with constants, name `this`, and ask
    `is_incremental()`; None for any other template.
    """
    try:
        return [call for node in tree.body for call in _calls_of_statement(node, functions)]
    except _NotConstant:
        return None


def _calls_of_statement(node: syntax.Node, functions: Collection[str]) -> Iterator[Call]:
    """All calls in a statement, in the order in which they stand."""
    match node:
        case syntax.Output():
            for expression in node.nodes:
                yield from _calls_of_expression(expression, functions)
        case syntax.If() if _asks_if_incremental(node.test):
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


def _asks_if_incremental(test: syntax.Node) -> bool:
    match test:
        case syntax.Not():
            return _asks_if_incremental(test.node)
        case syntax.Call(node=syntax.Name(name="is_incremental"), args=[], kwargs=[]):
            return True
    return False
