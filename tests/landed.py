"""A project in a folder and the command line in it, for fixtures of any scope: a module lands it once, and each test
looks at it, goes on with it, or changes it and has it put back.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from runner.cli import main
from tests.conftest import Ran

PROJECTS = Path(__file__).parent / "projects"


def random_pieces(lengths: Mapping[str, int], runs: int, chance: Random) -> Iterator[dict[str, tuple[int, int]]]:
    """For each run the part of each list that it reads, from where to where; all parts together are the lists."""
    ends = {name: sorted(chance.randint(1, length - 1) for _ in range(runs - 1)) for name, length in lengths.items()}
    for run in range(runs):
        bounds = {name: [0, *ends[name], length] for name, length in lengths.items()}
        yield {name: (of_list[run], of_list[run + 1]) for name, of_list in bounds.items()}


def files_of(name: str) -> dict[str, str]:
    """The files of a project in tests/projects: path -> text."""
    files = (path for path in (PROJECTS / name).rglob("*") if path.is_file())
    return {str(path.relative_to(PROJECTS / name)): path.read_text() for path in files}


class Project:
    def __init__(self, folder: Path, files: Mapping[str, str | bytes]) -> None:
        self.folder = folder
        self.write(files)

    def __truediv__(self, path: str) -> Path:
        return self.folder / path

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Files, given as path -> content."""
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def run(self, *words: str, stderr: io.StringIO | None = None) -> Ran:
        """A command, as the command line does it: exit code, standard output, standard error."""
        out, err, before = io.StringIO(), stderr or io.StringIO(), Path.cwd()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            os.chdir(self.folder)
            try:
                code = main(words)
            finally:
                os.chdir(before)
        return Ran(code, out.getvalue(), err.getvalue())

    def ok(self, *words: str) -> str:
        """What a command that has to succeed says."""
        ran = self.run(*words)
        assert ran.code == 0, ran.err
        return ran.err

    def rows(self, sql: str, *words: str) -> list[dict[str, Any]]:
        """The rows of a query, as `runner show` prints them."""
        ran = self.run("show", "--inline", sql, "--limit", "100000", "--output", "json", *words)
        assert ran.code == 0, ran.err
        # Not splitlines(): texts may hold other separators, which JSON leaves as they are.
        return [json.loads(line) for line in ran.out.split("\n") if line]

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """What the last command's artifact says of each node."""
        found = json.loads((self / "target/run_results.json").read_text())["results"]
        return {one["unique_id"].split(".")[-1]: one for one in found}

    @property
    def statuses(self) -> dict[str, str]:
        return {name: result["status"] for name, result in self.results.items()}

    def tables(self, path: str) -> set[str]:
        """The folders of tables below a target's path."""
        return {one.name for one in (self / path).iterdir() if one.name[0] != "_"}

    @contextlib.contextmanager
    def put_back(self) -> Iterator[None]:
        """Gives back all files as they were: paths in tables of Parquet and in checkpoints are absolute, so that a copy
        of the folder would go on with the tables of this one.
        """
        kept = self.folder.with_name(f"{self.folder.name}.kept")
        shutil.copytree(self.folder, kept)
        try:
            yield
        finally:
            shutil.rmtree(self.folder)
            kept.rename(self.folder)
