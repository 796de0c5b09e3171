"""What docs/from-dbt.md says of each part of dbt is so."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from runner import cli
from runner.errors import RunnerError
from runner.project import dbt_hints, properties, settings, sources
from runner.project.nodes import Graph
from runner.project.select import LOOKED_UP, METHODS, select
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


@pytest.fixture(scope="module")
def refused() -> Callable[..., RunnerError]:
    """The mistake that words on the command line are."""

    def mistake(*words: str) -> RunnerError:
        error = cli.execute(words).exception
        assert isinstance(error, RunnerError)
        return error

    return mistake


def test_flags(refused: Callable[..., RunnerError]) -> None:
    help_texts = io.StringIO()
    for name, (verdict, _) in {"": ("same", ""), **rows("Commands")}.items():
        if verdict == "same":
            with contextlib.redirect_stdout(help_texts):
                assert cli.main([*name.split(), "--help"]) == 0
    assert "-f, --full-refresh" in help_texts.getvalue()
    for flag, (verdict, said) in rows("Flags").items():
        assert bool(re.search(rf"(?<![\w-]){flag}(?![\w-])", help_texts.getvalue())) == (verdict == "same"), flag
        is_long = flag.startswith("--")
        for word in () if verdict == "same" else {flag, flag.replace("--", "--no-", 1)} if is_long else {flag}:
            error = refused("clean", word, "x")
            assert error.message == f'unknown argument "{word}"' and str(error.hint).startswith(said)


def test_commands(refused: Callable[..., RunnerError]) -> None:
    for name, (verdict, _) in rows("Commands").items():
        if verdict != "same" and name not in ("init", "parse"):
            assert refused(*name.split()).hint == dbt_hints.COMMANDS[name.split()[-1]]


def test_methods() -> None:
    for name, (verdict, _) in rows("Selectors").items():
        assert (name in (*METHODS, *LOOKED_UP, "config")) == (verdict == "same"), name
        if verdict != "same":
            with pytest.raises(RunnerError) as caught:
                select(Graph.of({"a": []}), [f"{name}:x"])
            assert caught.value.hint == dbt_hints.METHODS[name]


def told_in(project, runner, models: dict[str, str]) -> dict[str, list[tuple[str, str, str]]]:
    """Model -> code, message and hint of each mistake in it, of models that are read together."""
    project({f"models/m_{name}.sql": text for name, text in models.items()})
    ran = runner("ls")
    found = re.findall(r"^error\[(.*)\]: (.*)\n  --> models/m_(.*).sql:1\n  hint: (.*)$", ran.err, re.MULTILINE)
    assert len(found) == ran.err.count("error["), ran.err
    return {name: [(code, said, hint) for code, said, model, hint in found if model == name] for name in models}


def test_settings(project, runner) -> None:
    known = (
        *settings.SETTINGS,
        *settings.SEED_SETTINGS,
        *properties.TEST_SETTINGS,
        *sources.SOURCE_CONFIG_KEYS,
    )
    missing = [name for name, (verdict, _) in rows("Settings").items() if verdict != "same"]
    assert {name for name in rows("Settings") if name not in missing} <= set(known)
    told = told_in(project, runner, {name: f"{{{{ config({name}='x') }}}} select 1 as a" for name in missing})
    for name in missing:
        ((code, said, hint),) = told[name]
        assert (code, said) == ("setting-unknown", f'unknown setting "{name}"')
        assert hint.startswith(dbt_hints.SETTINGS[name])


def test_names_in_templates(project, runner) -> None:
    uses = {
        "ref": "ref('x')",
        "source": "source('orders')",
        "config": "config(tags='a')",
        "var": "var('a', 1)",
        "env_var": "env_var('NONE', 'a', public=true)",
        "target": "target.name",
        "this": "this",
    }
    names = rows("What templates can call")
    models = {name: f"select '{{{{ {uses.get(name, name)} }}}}' as a" for name in names}
    (project() / "models").mkdir()
    Path("models/x.sql").write_text("select 1 as a")
    for name, found in told_in(project, runner, models).items():
        assert bool(found) == (names[name][0] != "same"), name
        for code, said, hint in found:
            assert code == "template" and "is not defined" in said and hint.startswith(dbt_hints.NAMES[name])
