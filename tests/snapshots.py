"""The compiled SQL of every built-in format and view, as files for reviewers; docs/formats.md shows one of them.
`make snapshots` writes them anew.
"""

from __future__ import annotations

import re
from pathlib import Path

from runner.compile.compiled import CompiledNode
from runner.compile.library import Library
from runner.compile.nodes import compile_nodes
from runner.run.workspace import ProjectArguments, Selection, Workspace

FOLDER = Path(__file__).parent / "compiled"
PAGE = FOLDER.parent.parent / "docs/formats.md"
SHOWN = re.compile(r"(?<=<!-- begin: the model of the source canal -->\n```sql\n).*(?=```\n<!-- end -->)", re.DOTALL)


def nodes() -> dict[str, CompiledNode]:
    """Name -> all models of the project in tests/compiled, which are those of its sources and the views over them."""
    workspace = Workspace(ProjectArguments(project_dir=FOLDER))
    models = workspace.chosen(Selection(select=("resource_type:model",)))
    compiled = compile_nodes(models, workspace.templates, workspace.formats, Library(workspace.templates.renderer))
    return {model.name: compiled.nodes[model.name] for model in models}


def compiled() -> dict[str, str]:
    """File name -> SQL of these models."""
    return {f"{name}.sql": node.sql.rstrip() + "\n" for name, node in nodes().items()}


def written() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.sql"))}


def page(text: str) -> str:
    """The page of formats with the model of the source `canal` as it is in tests/compiled."""
    return SHOWN.sub(lambda _: written()["canal_to_changelog.sql"], text)


if __name__ == "__main__":
    for old in FOLDER.glob("*.sql"):
        old.unlink()
    for name, sql in compiled().items():
        (FOLDER / name).write_text(sql, encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
