"""The library of SQL functions: those of this project and of the user's, and the selection that a query needs."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from runner.compile.compiled import Compiled, CompiledNode, Print
from runner.errors import Problems, RunnerError
from runner.files import read_text
from runner.functions.avro.layout import AvroFunction
from runner.functions.signatures import PYTHON_FUNCTIONS, PythonFunction
from runner.project.nodes import Graph
from runner.project.sql_functions import SqlFunction, distinct, read_functions
from runner.project.templates import new_rows_view
from runner.render import Renderer, function_folder
from runner.sql_text import names_called

# Calls do not quote names of the library, and may write them in upper or lower case.
NAME = re.compile("[a-z_][a-z0-9_]*")
BUILT_IN_NAME = re.compile(r"^create function (\w+)", re.MULTILINE)


class Library:
    """The functions in the files of `functions/` in all folders of macros. No file is read before the first question.
    Then all files of the user are read, so that mistakes in functions that nothing calls are reported too. A built-in
    file is read when one of its functions is called. Safe for several threads.
    """

    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer
        self.reading = threading.RLock()
        self.functions: dict[str, SqlFunction] = {}
        # The files of the built-in functions, by the names of the functions; None before the first question.
        self.built_in: dict[str, Path] | None = None

    def called_by(self, sql: str, own: Iterable[SqlFunction] = ()) -> tuple[SqlFunction, ...]:
        """Returns the functions that SQL calls, directly or through others, each once, in the order in which they must
        be made. All functions in `own`, which belong to this SQL alone and may call each other, are among them, in the
        order given. Raises `function-cycle` for functions that call each other in a circle.
        """
        with self.reading:
            self._begin()
            given = list(own)
            for function in given:
                self._check_free(function)
            groups = [[*self._needed(function.calls), function] for function in given]
            return distinct([*groups, self._needed(names_called(sql))])

    def complete(self, node: CompiledNode) -> CompiledNode:
        """Returns the node with all SQL functions that it needs; the given node has only those that no other node
        calls.
        """
        texts = "\n".join([node.sql, node.increment or "", *node.pre_hook, *node.post_hook])
        return replace(node, sql_functions=self.called_by(texts, node.sql_functions))

    def find(self, name: str) -> SqlFunction | None:
        """Returns the function of a name, if there is one."""
        with self.reading:
            self._begin()
            return self._function(name)

    def all(self) -> tuple[SqlFunction, ...]:
        """Returns all functions, in the order in which they must be made."""
        with self.reading:
            self._begin()
            for name in self.built_in or ():
                self._function(name)
            return distinct([self._needed(self.functions)])

    def created(self, function: SqlFunction) -> str:
        """Returns the statement that makes a function of a session; it fails if the session has one of this name."""
        return self.renderer.call("temporary_function", function)

    def dropped(self, function: SqlFunction) -> str:
        """Returns the statement that removes the function of this name from a session."""
        return self.renderer.call("temporary_function_dropped", function)

    def _needed(self, names: Iterable[str]) -> list[SqlFunction]:
        """Returns the functions of the library among these names, each after those that it calls."""
        out: dict[str, SqlFunction] = {}

        def add(name: str, callers: tuple[str, ...]) -> None:
            function = self._function(name)
            if function is None or name in out:
                return
            if name in callers:
                circle = " -> ".join([*callers[callers.index(name) :], name])
                message = f"functions call each other in a circle: {circle}"
                raise RunnerError("function-cycle", message, function.where)
            for called in sorted(function.calls):
                add(called, (*callers, name))
            out[name] = function

        for name in sorted(names):
            add(name, ())
        return list(out.values())

    def _function(self, name: str) -> SqlFunction | None:
        """Returns the function of a name, if the library has one."""
        if name not in self.functions and self.built_in and name in self.built_in:
            self._add_file(self.built_in[name])
        return self.functions.get(name)

    def _begin(self) -> None:
        if self.built_in is not None:
            return
        *own, built_in = self.renderer.folders
        self.built_in = {name: path for path in _files(built_in) for name in BUILT_IN_NAME.findall(read_text(path))}
        problems = Problems()
        for path in (path for folder in own for path in _files(folder)):
            with problems.gathered():
                self._add_file(path)
        if problems.errors:
            self.built_in, self.functions = None, {}
        problems.raise_if_any()

    def _add_file(self, path: Path) -> None:
        read = read_functions(self.renderer.render(path, {}), path, read_text(path))
        for function in read:
            self._check_free(function)
            _check_name(function)
            self.functions[function.name] = function

    def _check_free(self, function: SqlFunction) -> None:
        """Raises `function-taken` if another function has the name of this one."""
        name = function.name.lower()
        if name in PYTHON_FUNCTIONS:
            raise _taken(function, "a function in Python of this project")
        if self.built_in and name in self.built_in and self.built_in[name] != function.where.path:
            raise _taken(function, "a built-in function")
        if name in self.functions:
            raise _taken(function, f"the function at {self.functions[name].where}")


def _files(folder: Path) -> Iterator[Path]:
    yield from sorted(function_folder(folder).rglob("*.sql"))


def _check_name(function: SqlFunction) -> None:
    if not NAME.fullmatch(function.name):
        message = f'"{function.name}" cannot be the name of a function, which calls do not quote'
        raise RunnerError("function-syntax", message, function.where, "use a-z, 0-9 and _, and no digit at the start")


def _taken(function: SqlFunction, by: str) -> RunnerError:
    return RunnerError("function-taken", f'the name "{function.name}" is taken', function.where, f"it is {by}")


def runnable(macro: Print, graph: Graph, name: str, node: CompiledNode) -> str:
    """Returns the SQL of a model after the settings and the functions that it needs; a comment says how to get those
    that are in Python. Where the model reads only the new rows of another one, all rows are new.
    """
    model = graph.nodes[name].model
    views = {new_rows_view(name, read): graph.nodes[read].relation for read in (model.new_rows if model else ())}
    return macro("runnable", name, node.sql_functions, _in_python([node]), views, node.sql.rstrip())


def functions_file(macro: Print, compiled: Compiled) -> str:
    """Returns the statements that make all SQL functions of the nodes, after a list of the functions in Python; empty
    if there are no such functions.
    """
    functions, python = compiled.sql_functions, _in_python(compiled.nodes.values())
    return macro("functions_file", functions, python) if functions or python else ""


def _in_python(nodes: Iterable[CompiledNode]) -> list[PythonFunction]:
    """Returns the functions in Python that nodes call, directly or through SQL functions, by name."""
    found: dict[str, PythonFunction] = {}
    for node in nodes:
        names = {*names_called(node.sql), *(name for function in node.sql_functions for name in function.calls)}
        found |= {name: PYTHON_FUNCTIONS[name] for name in names if name in PYTHON_FUNCTIONS}
        found |= {one.name: _signature(one) for one in node.functions}
    return [found[name] for name in sorted(found)]


def _signature(function: AvroFunction) -> PythonFunction:
    members = ["reason", "detail", *(name for name in ("fields", "images") if getattr(function, name))]
    return PythonFunction(
        function.name,
        "raw binary, own_schema string",
        f"struct<{', '.join(members)}>",
        "What a source reads of its messages in Avro.",
    )
