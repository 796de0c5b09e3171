"""JSON Schemas of specs and of project.yml in a project, for editors that complete and check YAML."""

from __future__ import annotations

from pathlib import Path

from runner.files import write_whole
from runner.grid import json_text
from runner.project.project import project_schema
from runner.spec.json_schema import spec_schema

FOLDER = ".schemas"
SCHEMAS = {"format": spec_schema, "project": project_schema}


def editor_line(kind: str, above: str = "") -> str:
    """Returns the first line of a file of this kind, which tells editors its schema. `above` leads from the file's
    folder to the folder of the project.

    >>> editor_line("format", "../")
    '# yaml-language-server: $schema=../.schemas/format.json'
    """
    return f"# yaml-language-server: $schema={above}{FOLDER}/{kind}.json"


def write_schemas(root: Path) -> None:
    """Writes the schemas to the places that the first lines of files name."""
    for kind, schema in SCHEMAS.items():
        write_whole(root / FOLDER / f"{kind}.json", json_text(schema()) + "\n")
