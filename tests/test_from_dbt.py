"""What docs/from-dbt.md says of each part of dbt is so."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from runner.cli import main
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
    parts = ("Commands", "Flags", "Selectors", "Settings", "What templates can call")
    assert [len(rows(one)) for one in parts] == [21, 101, 21, 48, 59]
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


COMMANDS = [[], *(name.split() for name, (verdict, _) in rows("Commands").items() if verdict == "same")]


@pytest.fixture(scope="module")
def help_texts() -> str:
    """What all commands that are the same say of their flags."""
    said = io.StringIO()
    for words in COMMANDS:
        with contextlib.redirect_stdout(said), pytest.raises(SystemExit):
            main([*words, "--help"])
    return said.getvalue()


@pytest.mark.parametrize(("flag", "verdict", "said"), [(flag, *one) for flag, one in rows("Flags").items()])
def test_flags(flag: str, verdict: str, said: str, help_texts: str, project, runner) -> None:
    assert bool(re.search(rf"(?<![\w-]){flag}(?![\w-])", help_texts)) == (verdict == "same")
    if verdict == "same":
        return
    project()
    others = [flag] if flag == "-o" or not flag.startswith("--") else [flag, flag.replace("--", "--no-", 1)]
    for word in others:
        ran = runner("clean", word, "x")
        assert ran.code == 2 and f'unknown argument "{word}"' in ran.err and f"hint: {said}" in ran.err


def test_full_refresh_has_a_short_form(runner) -> None:
    assert "-f, --full-refresh" in runner("build", "--help").out


def test_a_command_that_stands_alone_in_dbt(runner) -> None:
    ran = runner("parse")
    assert (
        ran.code == 2
        and "hint: runner parse FILE shows what messages become; runner check reads the project" in ran.err
    )


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
