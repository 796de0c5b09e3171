"""runner completion: what shells complete. The shells themselves are asked where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

FILES = {
    "project.yml": (
        "target: dev\ntargets: {dev: {path: a}, live: {path: b}}\n"
        "sources: [{name: shop, format: canal, files: 'in/*'}]\n"
    ),
    "models/orders.sql": "{{ config(tags=['nightly'], materialized='table') }} select 1 as id",
    "models/orders.yml": "models: [{name: orders, columns: [{name: id, data_tests: [not_null]}]}]",
}


@pytest.fixture
def candidates(project, runner: Callable[..., Ran]) -> Callable[[str], dict[str, str]]:
    """What could stand at the end of a line, with its meaning."""
    project(FILES)

    def asked(line: str) -> dict[str, str]:
        ran = runner("completion", "candidates", line)
        assert (ran.code, ran.err) == (0, "")
        return {word: meaning for word, _, meaning in (line.partition("\t") for line in ran.out.splitlines())}

    return asked


CANDIDATES = {
    "runner bu": {"build"},
    "runner formats l": {"list"},
    "runner formats show cana": {"canal"},
    "runner parse cana": {"canal"},
    "runner parse canal in/": set(),
    "runner build -s ord": {"orders"},
    "runner build --select not_null": {"not_null_orders_id"},
    "runner build -s +ord": {"+orders"},
    "runner build -s 2+ord": {"2+orders"},
    "runner build -s @ord": {"@orders"},
    "runner build -s shop_to_changelog,ord": {"shop_to_changelog,orders"},
    "runner build -s tag:": {"tag:nightly"},
    "runner build -s tag": {"tag:"},
    "runner build -s format:": {"format:canal"},
    "runner build -s source:": {"source:shop"},
    "runner build -s orders --exclude shop_to": {"shop_to_changelog"},
    "runner -q build -s ord": {"orders"},
    "runner build -t l": {"live"},
    "runner -t l": {"live"},
    "runner build --full": {"--full-refresh"},
    "runner --log-format j": {"json"},
    "runner mirrors suggest --source s": {"shop"},
    "runner build -s 'ord": set(),
    "runner nothing here": set(),
    "runner ls --vars ": set(),
}


def test_what_could_stand_at_the_cursor(candidates) -> None:
    assert {line: set(candidates(line)) for line in CANDIDATES} == CANDIDATES


def test_commands_and_flags_come_with_what_they_mean(candidates) -> None:
    commands = candidates("runner ")
    assert {"run", "build", "show", "debug"} <= set(commands)
    assert commands["show"] == "show the first rows of a model or query"
    flags = candidates("runner show --")
    assert "--inline" in flags and flags["--limit"].startswith("show at most N rows")
    assert candidates("runner build -s orders")["orders"] == "table"


def test_a_project_that_cannot_be_read_keeps_everything_else(candidates) -> None:
    Path("project.yml").write_text("sources: 7\n")
    assert all(word.endswith(":") for word in candidates("runner build -s "))
    assert set(candidates("runner bui")) == {"build"}


def test_a_project_elsewhere_is_asked(project, runner: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(FILES)
    (root / "empty").mkdir()
    monkeypatch.chdir(root / "empty")
    monkeypatch.chdir("/")
    assert runner("completion", "candidates", "runner ls -s ord").out == ""
    assert runner("completion", "candidates", f"runner --project-dir {root} ls -s ord").out == "orders\ttable\n"


# --- the shells themselves, which start a process for each line


@pytest.fixture
def shell(project, tmp_path: Path) -> Callable[..., list[str]]:
    """Runs a script in a shell that finds `runner`; returns the lines that it prints."""
    project(FILES)
    program = tmp_path / "bin" / "runner"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m runner.cli "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    environment["PATH"] = f"{program.parent}:{environment['PATH']}"

    def run(name: str, *words: str) -> list[str]:
        if not shutil.which(name):
            pytest.skip(f"{name} is not installed: its completion is not tested here")
        ran = subprocess.run([name, *words], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.splitlines()

    return run


BASH = """
eval "$(runner completion bash)"
complete -p runner
asked() {
    COMP_LINE="$1" COMP_POINT=${#1} COMP_WORDS=(runner) COMP_CWORD=1 COMP_WORDBREAKS=$' \\t:'
    _runner_complete
    printf '%s\\n' "${COMPREPLY[@]}"
}
asked "runner bui"
asked "runner build -s ord"
asked "runner build -s tag:ni"
"""


@pytest.mark.engines
def test_bash_completes(shell: Callable[..., list[str]]) -> None:
    """After a colon, bash completes only what follows it."""
    assert shell("bash", "-c", BASH) == [
        "complete -o default -F _runner_complete runner",
        "build",
        "orders",
        "nightly",
    ]


ZSH = """
autoload -Uz compinit && compinit -D
eval "$(runner completion zsh)"
compadd() { print -r -- "${values[@]}" }
words=(runner build -s ord) CURRENT=4
_runner
print -r -- "${_comps[runner]}"
"""


@pytest.mark.engines
def test_zsh_completes(shell: Callable[..., list[str]]) -> None:
    assert shell("zsh", "-fc", ZSH) == ["orders", "_runner"]


@pytest.mark.engines
def test_fish_completes(shell: Callable[..., list[str]]) -> None:
    script = "runner completion fish | source; complete -C 'runner build -s ord'"
    assert shell("fish", "-c", script) == ["orders\ttable"]
