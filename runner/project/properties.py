"""Properties of models and tests, read from YAML files beside the models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.errors import Problems, RunnerError, Where, nearest_or_all
from runner.files import read_text
from runner.project import dbt_hints
from runner.yaml_text import Yaml

PROPERTY_KEYS = ("version", "models", "seeds", "sources", "mirrors", "unit_tests", "exposures")
MODEL_KEYS = ("name", "description", "config", "meta", "docs", "columns", "data_tests", "tests")
COLUMN_KEYS = (
    *("name", "description", "data_type", "constraints", "config", "meta", "tags", "quote", "data_tests", "tests"),
)
EXPOSURE_KEYS = (
    "name", "label", "type", "url", "maturity", "description", "owner", "depends_on", "tags", "meta", "config",
)  # fmt: skip
UNIT_TEST_KEYS = ("name", "description", "model", "given", "expect", "overrides")


def entries(yaml: Yaml | None, key: str, known: tuple[str, ...], problems: Problems | None = None) -> list[Yaml]:
    """Returns the entries of the list under a key, each with a name. Mistakes are added to `problems`, or raised
    without it. An entry with unknown keys is returned too, so that its other mistakes are found.
    """
    gather = Problems() if problems is None else problems
    out = []
    with gather.gathered():
        for entry in yaml[key].list().elements() if yaml and yaml.get(key) else ():
            with gather.gathered():
                entry.only(known, instead=dbt_hints.KEYS)
            with gather.gathered():
                if not entry.get("name"):
                    raise entry.error("name-missing", f'every entry of "{key}" needs a "name"')
                entry["name"].text()
                out.append(entry)
    if problems is None:
        gather.raise_if_any()
    return out


def described_columns(yaml: Yaml | None) -> dict[str, str]:
    """Returns the columns under `columns`, with their descriptions."""
    columns = entries(yaml, "columns", COLUMN_KEYS)
    return {column["name"].text(): optional_text(column.get("description")) for column in columns}


def optional_text(yaml: Yaml | None) -> str:
    return yaml.text() if yaml else ""


def needed(yaml: Yaml, key: str) -> Yaml:
    if not yaml.mapping().get(key):
        raise yaml.error("unit-test-missing", f'{yaml.name()} needs "{key}"')
    return yaml[key]


def data_tests(yaml: Yaml) -> tuple[Yaml, ...]:
    """Returns the data tests of a model or of a column, under `data_tests` or under the older name `tests`."""
    if yaml.get("data_tests") and yaml.get("tests"):
        raise yaml["tests"].error("duplicate-key", '"tests" is an older name of "data_tests"', "keep one of them")
    tests = yaml.get("data_tests") or yaml.get("tests")
    return tuple(tests.as_list()) if tests else ()


def rows(yaml: Yaml) -> list[Any]:
    """Returns the rows of a test: mappings of columns to values."""
    return mappings(needed(yaml, "rows"))


def mappings(yaml: Yaml) -> list[Any]:
    return [row.mapping().value for row in yaml.list().elements()]


def ref_name(yaml: Yaml) -> str:
    """Returns the name of the model in a text such as `ref('orders')`.

    >>> ref_name(Yaml("ref('orders')", {}))
    'orders'
    """
    text = yaml.text().strip()
    return text.removeprefix("ref(").removesuffix(")").strip("'\" ")


BLOCK = re.compile(r"\{%-?\s*docs\s+(\w+)\s*-?%\}(.*?)\{%-?\s*enddocs\s*-?%\}", re.DOTALL)
TAKEN = re.compile(r"""\{\{-?\s*doc\(\s*(['"])([^'"]*)\1\s*\)\s*-?\}\}""")


def doc_blocks(files: Iterable[Path], problems: Problems) -> dict[str, str]:
    """Returns the blocks in Markdown files, name -> text; adds `duplicate-key` for a name that is given twice."""
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
    """Returns a property file whose descriptions have the blocks that they name; adds `doc-unknown` for unknown
    blocks.
    """

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
