"""What a page of the docs tells to copy and paste, as tests carry it out."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.sparks import COMMANDS, JARS

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)
PACKAGES = re.compile(r"packages: (?:\[[^\]]*\]|[^\s\[][^\n,}]*)")


def table(name: str, loader: Any = yaml.CSafeLoader) -> Any:
    """What stands in a file of tests/tables."""
    return yaml.load((ROOT / "tests/tables" / f"{name}.yml").read_text("utf-8"), loader)


class Block(NamedTuple):
    """A fenced block: `kind` is the word behind the fence, `name` what follows it, a file's path or nothing."""

    kind: str
    name: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(page.read_text())]


def section(page: Path, heading: str) -> list[Block]:
    """The blocks under one heading, up to the next one."""
    parts = re.split(r"^#+ (.*)\n", page.read_text(), flags=re.MULTILINE)
    texts = dict(zip(parts[1::2], parts[2::2]))
    return [Block(*found) for found in BLOCK.findall(texts[heading])]


def without_network(text: str) -> str:
    """A project.yml that finds in the jars of this checkout what it would fetch.

    >>> without_network("packages: [a:b:1, c:d:2]").startswith("jars: /")
    True
    """
    return PACKAGES.sub(f"jars: {JARS}/spark/*.jar", text)


def write_files(found: list[Block], folder: Path) -> None:
    """Writes the blocks that are files; of two with one name the later one stays."""
    for block in found:
        if block.name:
            path = folder / block.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(without_network(block.text))


def commands(found: list[Block]) -> list[list[str]]:
    """The words behind `runner` of each command that the blocks give; other commands are left out."""
    split = [words for block in found if block.kind == "sh" for words in statements(block.text)]
    return [words[1:] for words in split if words and Path(words[0]).name == "runner"]


def statements(text: str) -> list[list[str]]:
    """The words of each command; a quote may go on over several lines.

    >>> statements("a 'b  # c\\nd'  # it's\\ne \\\\\\n f")
    [['a', 'b  # c\\nd'], ['e', 'f']]
    """
    found, begun = [], ""
    for line in text.replace("\\\n", " ").splitlines():
        begun += line
        try:
            found.append(shlex.split(begun, comments=True))
            begun = ""
        except ValueError:  # the quote is still open
            begun += "\n"
    assert not begun, f"a quote is not closed: {begun}"
    return found


def run_block(block: Block, folder: Path, **environment: str) -> str:
    """Runs a block of commands in a shell that stops at the first that fails, each `runner` that of this checkout;
    returns what they print, raises with it if one fails.
    """
    path = f"{COMMANDS}:{os.environ['PATH']}"
    text = re.sub(r"(?<![\w/])(?:\.\./)?\.venv/bin/runner\b", "runner", block.text)
    ran = subprocess.run(
        ["bash", "-ec", text],
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, f"{block.text}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout
