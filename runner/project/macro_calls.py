"""The search for macros and variables that a template names, without rendering it: also through other macros."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2.nodes as syntax

from runner.files import read_text
from runner.render import Renderer

COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
WORD = re.compile(r"""(?P<text>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")|(?<![\w.])(?P<name>[A-Za-z_]\w*)""")
VARIABLE = re.compile(r"""(?<![\w.])var\s*\(\s*(?:'([^']*)'|"([^"]*)")?""")
DEFINED = re.compile(r"\{%[-+]?\s*(macro|test)\s+(\w+)(.*?)\{%[-+]?\s*end\1\b.*?%\}", re.DOTALL)
# The functions that call a macro by its name.
BY_NAME = {"macro", "each"}


@dataclass(frozen=True)
class Named:
    """The macros and variables that a template names. `variables` is None if only rendering shows which it reads."""

    macros: frozenset[str] = frozenset()
    variables: frozenset[str] | None = frozenset()

    def and_also(self, other: Named) -> Named:
        """Returns all macros and variables that two templates name."""
        unknown = self.variables is None or other.variables is None
        variables = None if unknown else (self.variables or frozenset()) | (other.variables or frozenset())
        return Named(self.macros | other.macros, variables)


class MacroCalls:
    """The macros of a project and the built-in ones, as texts. A macro counts as called where its name stands in an
    expression, so one too many may be found, and none is missed.
    """

    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer
        self.texts_in = cache(_macros_in)
        self.named_in = cache(self._named_in)

    def is_built_in(self, macro: str) -> bool:
        return self.renderer.files[macro].is_relative_to(self.renderer.built_in)

    def text(self, macro: str) -> str:
        """Returns the text of a macro, with the variables that its file sets outside of macros."""
        return self.texts_in(self.renderer.files[macro])[macro]

    def reached(self, macros: Iterable[str]) -> list[str]:
        """Returns these macros and those that they call, directly or through others, by name."""
        found: set[str] = set()
        frontier = set(macros)
        while frontier:
            found |= frontier
            frontier = {called for macro in frontier for called in self._called_in(macro)} - found
        return sorted(found)

    def _called_in(self, macro: str) -> frozenset[str]:
        called = self.named_in(self.text(macro)).macros
        # Built-in macros call only built-in ones: their variables may have the names of a project's macros.
        return called & self.renderer.built_in_names if self.is_built_in(macro) else called

    def _named_in(self, template: str) -> Named:
        code = " ".join(EXPRESSION.findall(COMMENT.sub("", template)))
        if self.renderer.namespace:
            code = re.sub(rf"(?<![\w.]){re.escape(self.renderer.namespace)}\.", "", code)
        words = [(found["name"], (found["text"] or "")[1:-1]) for found in WORD.finditer(code)]
        named = {name for name, _ in words if name in self.renderer.files}
        if any(name in BY_NAME for name, _ in words):
            named |= {macro for _, text in words if text for macro in self._called_by_name(text)}
        read = [one or other for one, other in VARIABLE.findall(code)]
        return Named(frozenset(named), frozenset(read) if all(read) else None)

    def _called_by_name(self, text: str) -> list[str]:
        """Returns the macros whose names are a text, or begin with it."""
        return [macro for macro in self.renderer.files if macro == text or (text[-1] == "_" and macro.startswith(text))]


def template_text(path: Path) -> str:
    """Returns the text of a template without parts of no influence: Jinja's comments, blanks around it, kinds of line
    ends.
    """
    return COMMENT.sub("", read_text(path)).replace("\r\n", "\n").strip()


def _macros_in(path: Path) -> dict[str, str]:
    text = template_text(path)
    beside = DEFINED.sub("", text).strip()
    named = {("test_" if found[1] == "test" else "") + found[2]: found[0] for found in DEFINED.finditer(text)}
    return {macro: f"{own}{beside}" for macro, own in named.items()}


Call = tuple[str, tuple[Any, ...], Mapping[str, Any], int]
"""A function that is called with constants, these, those given by name, and the line of the call."""


class _NotConstant(Exception):
    """Raised for a template whose calls only rendering shows."""


def constant_calls(tree: syntax.Template, functions: Collection[str]) -> list[Call] | None:
    """Returns the calls in a template that only calls these functions with constants, names `this` and tests
    `is_incremental()`; None for any other template.
    """
    try:
        return [call for node in tree.body for call in _calls_of_statement(node, functions)]
    except _NotConstant:
        return None


def _calls_of_statement(node: syntax.Node, functions: Collection[str]) -> Iterator[Call]:
    """Returns all calls in a statement, in their order."""
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
                yield function, arguments, named, expression.lineno
                return
    raise _NotConstant


def _is_incremental_test(test: syntax.Node) -> bool:
    match test:
        case syntax.Not():
            return _is_incremental_test(test.node)
        case syntax.Call(node=syntax.Name(name="is_incremental"), args=[], kwargs=[]):
            return True
    return False
