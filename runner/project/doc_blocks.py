"""Blocks of text in Markdown files, which descriptions take by name: `{% docs NAME %}` and `{{ doc('NAME') }}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.errors import Problems, RunnerError, Where, nearest_or_all
from runner.files import read_text
from runner.yaml_text import Yaml

BLOCK = re.compile(r"\{%-?\s*docs\s+(\w+)\s*-?%\}(.*?)\{%-?\s*enddocs\s*-?%\}", re.DOTALL)
TAKEN = re.compile(r"""\{\{-?\s*doc\(\s*(['"])([^'"]*)\1\s*\)\s*-?\}\}""")


def doc_blocks(files: Iterable[Path], problems: Problems) -> dict[str, str]:
    """Name -> text of the blocks in Markdown files; adds `duplicate-key` for a name that is given twice."""
    blocks: dict[str, str] = {}
    for path in files:
        text = read_text(path)
        for found in BLOCK.finditer(text):
            name, where = found[1], Where(path, text.count("\n", 0, found.start()) + 1)
            if name in blocks:
                problems.add(RunnerError("duplicate-key", f'there are two blocks "{name}"', where, "keep one"))
            blocks.setdefault(name, found[2].strip())
    return blocks


def with_docs(file: Yaml, blocks: Mapping[str, str], problems: Problems) -> Yaml:
    """A property file whose descriptions have the blocks that they name; adds `doc-unknown` for others."""

    def filled(yaml: Yaml) -> Any:
        match yaml.value:
            case dict():
                return {key: described(one) if key == "description" else filled(one) for key, one in yaml.items()}
            case list():
                return [filled(one) for one in yaml.elements()]
        return yaml.value

    def described(yaml: Yaml) -> Any:
        if not isinstance(yaml.value, str):
            return yaml.value
        for _, name in TAKEN.findall(yaml.value):
            if name not in blocks:
                hint = nearest_or_all(name, blocks) or "write {% docs NAME %} ... {% enddocs %} in models/NAME.md"
                problems.add(yaml.error("doc-unknown", f'there is no block "{name}"', hint))
        return TAKEN.sub(lambda found: blocks.get(found[2], ""), yaml.value)

    return replace(file, value=filled(file))
