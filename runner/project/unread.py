"""Folders and files of a project that nothing reads, though people who know dbt may expect it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from runner.errors import RunnerWarning, Where
from runner.files import read_text
from runner.project import absent
from runner.render import function_folder

# What is looked for in a project's folder -> what to do instead.
UNREAD = {
    "snapshots/*": "the changelog already has the history of each row: select it in a model",
    "analyses/*": absent.KEYS["analyses"],
    "models/**/*.py": f"{absent.SETTINGS['packages']}: write the model as a query",
    "macros/**/*.y*ml": absent.KEYS["macros"],
    "formats/**/*.yaml": "the names of formats and types end in .yml",
    "tests/*.y*ml": "a test has {{ config(...) }} in its own file; properties of models belong into models/",
    "dbt_project.yml": "project.yml takes its place: vars, and settings of folders under models and seeds",
    "packages.yml": absent.COMMANDS["deps"],
    "dependencies.yml": absent.COMMANDS["deps"],
    "profiles.yml": absent.TARGET,
}
# Macros that dbt looks for by their names -> what to do instead.
UNCALLED = {
    "generate_schema_name": absent.TARGET,
    "generate_database_name": absent.TARGET,
    "generate_alias_name": "a model has an alias of its own: config(alias='...')",
}
DEFINED = re.compile(r"\{%-?\s*macro\s+(\w+)")


def unread(root: Path) -> Iterator[RunnerWarning]:
    """A warning for each kind of file that is there and that no command reads, and for each macro that dbt looks for by
    its name.
    """
    functions = function_folder(root / "macros")
    for pattern, hint in UNREAD.items():
        if found := sorted(path for path in root.glob(pattern) if not path.is_relative_to(functions)):
            first = found[0].relative_to(root).as_posix()
            what = f'"{first}"' if len(found) == 1 else f'"{first}" and {len(found) - 1} more of its kind'
            yield RunnerWarning("files-unread", f"nothing reads {what}", Where(found[0]), hint)
    for path in sorted(root.glob("macros/**/*.sql")):
        for name in DEFINED.findall(read_text(path)):
            if name in UNCALLED:
                yield RunnerWarning("files-unread", f'nothing looks for "{name}"', Where(path), UNCALLED[name])
