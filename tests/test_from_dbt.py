"""What docs/from-dbt.md says of each part of dbt is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner.project import absent, data_test_config, foreign, settings
from runner.project.select import LOOKED_UP, METHODS
from tests.pages import ROOT

PAGE = (ROOT / "docs/from-dbt.md").read_text()
ROW = re.compile(r"^\| `([^`]+)` \| (same|other|not here) \| (.*) \|$", re.MULTILINE)


def rows(heading: str) -> dict[str, tuple[str, str]]:
    """Name -> what it is here, and what is said of it."""
    text = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return {name: (verdict, said) for name, verdict, said in ROW.findall(text)}


def test_the_page_has_all_of_it() -> None:
    assert [len(rows(one)) for one in ("Commands", "Selectors", "Settings", "What templates can call")] == [
        21,
        21,
        48,
        59,
    ]
    missing = [
        name
        for name, (verdict, said) in {**rows("Commands"), **rows("Settings")}.items()
        if verdict != "same" and not said
    ]
    assert missing == []


def test_a_project_of_dbt_lacks_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    ran = runner("build")
    assert ran.code == 2 and "hint: write one beside dbt_project.yml, with name: NAME" in ran.err


@pytest.mark.parametrize(
    ("word", "hint"),
    [("--models", "-s, --select"), ("--profiles-dir", "targets in project.yml"), ("-m", "-s, --select")],
)
def test_flags(word: str, hint: str, project, runner) -> None:
    project()
    ran = runner("run", word, "x")
    assert ran.code == 2 and f'unknown argument "{word}"' in ran.err and f"hint: {hint}" in ran.err


@pytest.mark.parametrize(("name", "verdict"), [(name, one[0]) for name, one in rows("Commands").items()])
def test_commands(name: str, verdict: str, runner) -> None:
    word, *rest = name.split()
    ran = runner(word, *rest, "--help")
    if verdict == "same":
        assert ran.code == 0
    elif name not in ("init", "parse"):
        ran = runner(word, *rest)
        assert ran.code == 2 and f"hint: {absent.COMMANDS[(rest or [word])[0]]}" in ran.err


@pytest.mark.parametrize(("name", "verdict"), [(name, one[0]) for name, one in rows("Selectors").items()])
def test_methods(name: str, verdict: str, project, runner) -> None:
    assert (name in (*METHODS, *LOOKED_UP, "config")) == (verdict == "same")
    if verdict != "same":
        project()
        ran = runner("ls", "-s", f"{name}:x")
        assert ran.code == 2 and f"hint: {absent.METHODS[name]}" in ran.err


@pytest.mark.parametrize(("name", "verdict"), [(name, one[0]) for name, one in rows("Settings").items()])
def test_settings(name: str, verdict: str, project, runner) -> None:
    of_models = name in (*settings.SETTINGS, *settings.SEED_SETTINGS)
    if verdict == "same":
        assert of_models or name in (*data_test_config.TEST_SETTINGS, *foreign.CONFIG_KEYS)
        return
    project({"models/m.sql": f"{{{{ config({name}='x') }}}} select 1 as a"})
    ran = runner("compile")
    assert ran.code == 2 and f'error[setting-unknown]: unknown setting "{name}"' in ran.err
    assert f"hint: {absent.SETTINGS[name]}" in ran.err


@pytest.mark.parametrize(("name", "verdict"), [(name, one[0]) for name, one in rows("What templates can call").items()])
def test_names_in_templates(name: str, verdict: str, project, runner) -> None:
    uses = {
        "ref": "ref('x')",
        "source": "source('orders')",
        "config": "config(tags='a')",
        "var": "var('a', 1)",
        "env_var": "env_var('NONE', 'a', public=true)",
        "target": "target.name",
        "this": "this",
    }
    project({"models/m.sql": f"select '{{{{ {uses.get(name, name)} }}}}' as a", "models/x.sql": "select 1 as a"})
    ran = runner("compile", "-s", "m")
    if verdict == "same":
        assert ran.code == 0, ran.err
    else:
        assert ran.code == 2 and "is not defined" in ran.err and f"hint: {absent.NAMES[name]}" in ran.err
