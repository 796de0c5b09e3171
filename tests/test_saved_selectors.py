"""selectors.yml: selections with names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner.run.workspace import ProjectArguments, Selection, Workspace
from tests import pages

# changelog -> a -> b -> c, with d beside them.
MODELS = {
    "models/a.sql": "{{ config(tags=['nightly']) }} select 1 as x from {{ ref('changelog') }}",
    "models/b.sql": "select x from {{ ref('a') }}",
    "models/c.sql": "{{ config(materialized='table', tags=['nightly']) }} select x from {{ ref('b') }}",
    "models/d.sql": "{{ config(tags=['nightly', 'slow']) }} select 1 as x",
    "models/c.yml": "models: [{name: c, columns: [{name: x, data_tests: [not_null]}]}]",
}
DEFINITIONS = {
    "tag:nightly": "a c d",
    "tag:nightly,c": "c",
    "{tag: nightly}": "a c d",
    "{config.materialized: table}": "c",
    "{method: tag, value: nightly, exclude: [d, {tag: slow}]}": "a c",
    "{method: name, value: a, children: true, children_depth: 1}": "a b",
    "{method: name, value: a, children: true}": "a b c not_null_c_x",
    "{method: name, value: c, parents: true, parents_depth: 2}": "a b c",
    "{method: name, value: b, childrens_parents: true, exclude: [+changelog]}": "a b c not_null_c_x",
    "{union: [a, {method: tag, value: slow}]}": "a d",
    "{union: [{tag: nightly}, b, {exclude: [{tag: slow}, a]}]}": "b c",
    "{intersection: [{tag: nightly}, {method: name, value: b, children: true}]}": "c",
    "{union: [d, {intersection: [a+, 'resource_type:model', {exclude: [b]}]}]}": "a c d",
    "{method: selector, value: other, children: true}": "b c not_null_c_x",
    "{union: [{method: selector, value: other}, d]}": "b d",
}


def test_what_definitions_select(project: Callable[..., Path]) -> None:
    """Those that are mistakes are in tests/mistakes/selectors.yml."""
    named = "".join(f"  - name: s{number}\n    definition: {one}\n" for number, one in enumerate(DEFINITIONS))
    project({**MODELS, "selectors.yml": f"selectors:\n  - {{name: other, definition: b}}\n{named}"})
    workspace = Workspace(ProjectArguments())
    for number, (definition, expected) in enumerate(DEFINITIONS.items()):
        for selection in (Selection(selector=f"s{number}"), Selection(select=(f"selector:s{number}",))):
            assert workspace.selected(selection) == set(expected.split()), definition


def selectors(default: str) -> dict[str, str]:
    mine = f"{{name: mine, description: slow ones, default: {default}, definition: 'tag:slow'}}"
    return {**MODELS, "selectors.yml": f"selectors:\n  - {mine}\n  - {{name: other, definition: b}}\n"}


def test_the_default_selector_counts_where_nothing_is_selected(
    project: Callable[..., Path], runner: Callable[..., Any]
) -> None:
    project(selectors("\"{{ target.name == 'local' }}\""))
    assert runner("ls").out.split() == ["d"]
    assert [Path(path).stem for path in runner("compile").out.split()] == ["d"]
    assert runner("ls", "-s", "a").out.split() == ["a"]
    assert runner("ls", "--selector", "other").out.split() == ["b"]
    assert "a" in runner("ls", "--exclude", "b").out.split()
    project(selectors("\"{{ target.name == 'prod' }}\""))
    assert {"a", "b", "c", "d"} < set(runner("ls").out.split())


def test_the_selectors_of_the_docs(project: Callable[..., Path], runner: Callable[..., Any]) -> None:
    (shown,) = [block.text for block in pages.blocks(pages.ROOT / "docs/selection.md") if block.kind == "yaml"]
    (path := project({**MODELS, "selectors.yml": shown}) / "models/staging").mkdir()
    (path / "e.sql").write_text("{{ config(materialized='table', tags=['orders']) }} select x from {{ ref('d') }}")
    assert sorted(runner("ls", "--selector", "nightly").out.split()) == ["a", "b", "c", "e", "not_null_c_x"]
    assert "changelog" in runner("ls", "--selector", "before_nightly").out.split()
    assert runner("ls", "--selector", "staging").out.split() == ["e"]
