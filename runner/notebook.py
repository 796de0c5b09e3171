"""Prepares a session of pyspark that the runner did not open for compiled SQL."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Any

from runner.compile.library import Library
from runner.compile.nodes import compile_nodes
from runner.functions.signatures import PYTHON_FUNCTIONS
from runner.run.workspace import ProjectArguments, Selection, Workspace


def register(spark: Any, *models: str, project_dir: str | Path | None = None) -> None:
    """Registers in a session of pyspark the functions in Python that the SQL of these models calls; without models,
    those of all models. The project is that of the current folder or of `project_dir`. The SQL functions are in the SQL
    that `runner compile --runnable` prints.
    """
    from runner.engine.functions import SessionFunctions

    workspace = Workspace(ProjectArguments(Path(project_dir).absolute() if project_dir else None))
    library = Library(workspace.templates.renderer)
    nodes = workspace.chosen(Selection(models), attrgetter("model"))
    compiled = compile_nodes(nodes, workspace.templates, workspace.formats, library)
    functions = SessionFunctions(spark, library)
    functions.make_python(PYTHON_FUNCTIONS)
    for node in compiled.nodes.values():
        functions.register(node.functions)
