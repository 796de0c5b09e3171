"""Jinja for templates that nobody has reviewed: they compute texts, and reach only the values that they are given."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import jinja2
import jinja2.nodes as syntax
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

# Only the first part of a module's name counts. Objects of other modules, such as paths, may do more than compute.
CALLABLE_OBJECTS_OF = ("builtins", "jinja2", "runner")
READS_FILES = {
    syntax.Include: "include",
    syntax.Import: "import",
    syntax.FromImport: "import",
    syntax.Extends: "extends",
}


class TestTag(Extension):
    """Reads `{% test NAME(model, ...) %} ... {% endtest %}`, which is another way to write the macro `test_NAME`."""

    tags = {"test"}  # noqa: RUF012

    def parse(self, parser: Parser) -> syntax.Node:
        line = next(parser.stream).lineno
        macro = syntax.Macro(lineno=line)
        macro.name = f"test_{parser.parse_assign_target(name_only=True).name}"
        parser.parse_signature(macro)
        macro.body = parser.parse_statements(("name:endtest",), drop_needle=True)
        return macro


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment whose templates see only some names. `instead` maps names and tags that do not exist, but that
    people look for, to hints.
    """

    instead: Mapping[str, str] = MappingProxyType({})

    def __init__(self, names: Mapping[str, Any], **options: Any) -> None:
        super().__init__(undefined=jinja2.StrictUndefined, extensions=["jinja2.ext.do", TestTag], **options)
        self.globals = {**{name: self.globals[name] for name in ("range", "dict", "namespace")}, **names}
        del self.filters["random"]  # the same project compiles to the same SQL

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, list) and attr in ("append", "extend"):
            return True
        is_own = isinstance(value, Macro) or type(obj).__module__.split(".")[0] in CALLABLE_OBJECTS_OF
        return super().is_safe_attribute(obj, attr, value) and (is_own or not callable(value))

    def _parse(self, source: str, name: str | None, filename: str | None) -> syntax.Template:
        tree = super()._parse(source, name, filename)
        for node in tree.find_all(tuple(READS_FILES)):
            message = f'"{READS_FILES[type(node)]}" is not for templates here: macros are called by name'
            raise jinja2.TemplateSyntaxError(message, node.lineno)
        return tree
