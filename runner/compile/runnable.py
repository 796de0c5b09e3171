"""Compiled nodes -> texts that people run: SQL with the settings and the functions that it needs."""

from __future__ import annotations

from collections.abc import Iterable

from runner.compile.compiled import Compiled, CompiledNode, Print
from runner.functions.avro.layout import AvroFunction
from runner.functions.signatures import PYTHON_FUNCTIONS, PythonFunction
from runner.project.graph import Graph
from runner.project.templates import new_rows_view
from runner.sql_text import names_called


def runnable(macro: Print, graph: Graph, name: str, node: CompiledNode) -> str:
    """The SQL of a model after the settings and the functions that it needs; a comment says how to get those that are
    in Python. Of what it reads only the new rows of, all rows are new.
    """
    model = graph.nodes[name].model
    views = {new_rows_view(name, read): graph.nodes[read].relation for read in (model.new_rows if model else ())}
    return macro("runnable", name, node.sql_functions, _in_python([node]), views, node.sql.rstrip())


def functions_file(macro: Print, compiled: Compiled) -> str:
    """The statements that make all SQL functions of the nodes, after a list of the functions in Python; empty if there
    are no such functions.
    """
    functions, python = compiled.sql_functions, _in_python(compiled.nodes.values())
    return macro("functions_file", functions, python) if functions or python else ""


def _in_python(nodes: Iterable[CompiledNode]) -> list[PythonFunction]:
    """The functions in Python that nodes call, directly or through SQL functions, by name."""
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
