"""Every mistake a person can make has a code, a place and a hint: exit code 2, no traceback. The mistakes are in
tests/mistakes, a file for each subject.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
FORMAT = "about: x\nop:\n  by: type\n  cases: {I: insert}\nafter: data\n"


@dataclass(frozen=True)
class Case:
    """`place` and `hint` are what follows `-->` and `hint:`, None where there is no such line; `says` is in the
    message.
    """

    code: str
    place: str | None
    hint: str | None
    says: str
    files: Mapping[str, str | bytes]
    words: tuple[str, ...]


class Texts(yaml.CBaseLoader):
    """YAML as the runner reads it, where every scalar is text; `!!binary` is for files that are no text."""


Texts.add_constructor("tag:yaml.org,2002:binary", yaml.SafeLoader.construct_yaml_binary)


def read_case(written: dict[str, Any], subject: dict[str, Any]) -> Case:
    """A mistake: `code`, `place`, `hint`, `says`, and the command to `run`. What it is made in are the files of the
    subject; files of its own; and, for each key of the subject that it has, the files in which `<key>` stands for it.
    """
    one = dict(written)
    told = [one.pop("code"), one.pop("place", None), one.pop("hint", None), one.pop("says")]
    run, own = one.pop("run", subject.get("run", "compile")), one.pop("files", {})
    files = dict(subject.get("files", {}))
    for key, value in one.items():
        files |= {path: text.replace(f"<{key}>", value) for path, text in subject["keys"][key].items()}
    return Case(*told, files | own, tuple(shlex.split(run)))


def read_cases(path: Path) -> Iterator[tuple[str, Case]]:
    subject = yaml.load(path.read_bytes(), Texts)
    for number, written in enumerate(subject["cases"], 1):
        case = read_case(written, subject)
        yield f"{path.stem}-{case.code}-{number}", case


CASES = dict(case for path in sorted((ROOT / "tests/mistakes").glob("*.yml")) for case in read_cases(path))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_mistake(case: Case, project, runner) -> None:
    project(case.files)
    ran = runner(*case.words)
    assert ran.code == 2, ran.err
    assert "Traceback" not in ran.err
    first, *rest = ran.err.splitlines()
    assert first.startswith(f"error[{case.code}]: ") and case.says in first, ran.err
    assert len(re.findall(r"^error\[", ran.err, re.MULTILINE)) == 1, ran.err
    assert [line.removeprefix("  --> ") for line in rest if line.startswith("  --> ")] == (
        [case.place] if case.place else []
    )
    assert_well_said(first.split("]: ", 1)[1])
    hints = [line.removeprefix("  hint: ") for line in rest if line.startswith("  hint: ")]
    assert len(hints) == bool(case.hint) and all(hint.startswith(str(case.hint)) for hint in hints), ran.err


def assert_well_said(message: str) -> None:
    """Lower case, no full stop, nothing that tells a person nothing."""
    assert message[0].islower() or message[0] in "\"'-" or message.startswith(("not YAML", "not UTF-8")), message
    assert not message.endswith("."), message
    assert not re.search(r"\b(invalid|oops|something|Error)\b", message), message


# --- all of them


CODE_AT = {"RunnerError": 0, "error": 0, "_error": 1, "one_of": 2}


def codes_in(path: Path) -> Iterator[str]:
    """The codes of errors that a file raises."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            at = CODE_AT.get(name)
            if at is not None and len(node.args) > at and isinstance(node.args[at], ast.Constant):
                yield node.args[at].value
        if isinstance(node, ast.arguments):
            defaults = dict(zip([argument.arg for argument in node.args][::-1], node.defaults[::-1]))
            if isinstance(defaults.get("code"), ast.Constant):
                yield defaults["code"].value


@pytest.fixture(scope="module")
def codes() -> set[str]:
    """The codes of all errors that are raised."""
    return {code for path in (ROOT / "runner").rglob("*.py") for code in codes_in(path)}


def test_codes_are_words(codes: set[str]) -> None:
    assert len(codes) > 50
    assert [code for code in codes if not re.fullmatch(r"[a-z]+(-[a-z]+)*", code)] == []


def test_every_code_has_a_case(codes: set[str]) -> None:
    # Of locks that others hold, a Spark that does not start or has ended, an archive of its classes, a file that is too
    # large, what has landed and databases, there are tests of their own.
    locks, spark = {"target-held", "target-lock"}, {"prepare", "spark-gone", "spark-start"}
    others = locks | spark | {"mirror-exists", "mirror-nothing", "yaml-size"}
    databases = {"verify-connection", "verify-file"}
    landed = {"dead-letter-unknown", "raw-not-kept", "rename-both", "rename-refused", "source-not-replayable"}
    copies = {"copy-incomplete", "copy-target-not-empty", "copy-unfinished", "copy-unsettled"}
    erased = {"erase-key", "erase-mirror", "erase-table", "erase-unfinished"}
    assert codes - {case.code for case in CASES.values()} == others | databases | landed | copies | erased


def test_every_code_is_documented_and_no_other(codes: set[str]) -> None:
    sources = "".join(path.read_text() for path in (ROOT / "runner").rglob("*.py"))
    pages = (ROOT / "docs/errors.md").read_text().split("## Warnings")
    errors, warnings = (re.findall(r"^\| `([^`]+)` \| \S.* \| \S.* \|$", page, re.MULTILINE) for page in pages)
    assert errors == sorted(codes)
    assert warnings == sorted(set(re.findall(r'RunnerWarning\(\s*"([^"]+)"', sources)))


def test_debug_keeps_the_traceback(project, runner) -> None:
    project({"models/m.sql": "select {{ 1 / 0 }}"})
    assert "Traceback" not in runner("ls").err
    ran = runner("ls", "-d")
    assert ran.code == 2 and "Traceback" in ran.err and "ZeroDivisionError" in ran.err


def test_a_bug_of_ours_keeps_its_traceback_and_says_so(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise KeyError("deep inside")

    monkeypatch.setattr("runner.run.workspace.read_project", broken)
    project()
    ran = runner("ls")
    assert ran.code == 1 and "Traceback" in ran.err and "this is a bug in the runner" in ran.err


def test_a_bug_in_a_built_in_macro_is_no_mistake_of_the_user(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> str:
        raise KeyError("deep inside")

    monkeypatch.setattr("runner.render.sql_inner", broken)
    project()
    ran = runner("compile", "-s", "orders_to_changelog")
    assert ran.code == 1 and "this is a bug in the runner" in ran.err


def test_mistakes_as_json(project, runner) -> None:
    project({"models/m.sql": "select\n{{ reff('x') }}"})
    ran = runner("ls", "--log-format", "json")
    (event,) = [json.loads(line) for line in ran.err.splitlines()]
    assert {key: event[key] for key in ("event", "code", "where", "hint")} == {
        "event": "error",
        "code": "template",
        "where": "models/m.sql:2",
        "hint": 'did you mean "ref"?',
    }


def test_built_in_macros_that_may_be_replaced(project, runner) -> None:
    """Others may not: see the cases of `macro-taken`. What replaces a macro is what is called."""
    project(
        {
            "macros/mine.sql": "{% macro delta_vacuumed(table, hours) %}vacuum{% endmacro %}"
            "{% macro test_not_null(model, column) %}select 'mine' from {{ model }}{% endmacro %}",
            "models/m.sql": "select 1 as a",
            "models/m.yml": "models: [{name: m, columns: [{name: a, data_tests: [not_null]}]}]",
        }
    )
    assert "select 'mine' from `m`" in runner("compile", "-q", "-s", "not_null_m_a").out
