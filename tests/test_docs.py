"""What the documents say is so: every command in the README runs and prints what stands there, every word of the code
is documented.
"""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from runner import cli, contract
from runner.project import (
    dead_letters,
    nodes,
    notifications,
    parse,
    project,
    properties,
    select,
    settings,
    sources,
    state,
    targets,
    tests,
    topics,
)
from runner.render import REPLACEABLE
from runner.spec import messages as spec_messages
from runner.spec import op as spec_lines
from runner.spec import read as spec_reading
from runner.spec import schemas as spec_schemas
from runner.spec import values as spec_values
from runner.spec import vocabulary as spec
from runner.storage.known import STORAGES
from tests.pages import ROOT, blocks
from tests.sparks import SPARKS

TERMINAL = ROOT / "docs/pictures/terminal.svg"


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The sample project as the README speaks of it, with the files that it shows."""
    for folder in ("formats", "models", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copyfile(ROOT / "project.yml", tmp_path / "project.yml")
    for language, name, text in blocks(ROOT / "README.md"):
        if language == "yaml" and name.startswith("formats/"):
            (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def words_of(line: str) -> list[str]:
    """The runner's arguments in a line of shell."""
    words = shlex.split(line.split("#")[0] if "'#" not in line else line)
    return words[1:]


def test_commands_of_the_readme(
    copy: Path, spark: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # the tables that it shows are wide
    assert cli.main(["run"]) == 0
    ran, output = [], ""
    for language, _, text in blocks(ROOT / "README.md"):
        if language == "text":
            assert output.strip() == text.strip()
        for line in text.splitlines() if language == "sh" else ():
            if line.startswith("make"):
                target = line.split()[1]
                assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
                continue
            if line.startswith("cd "):
                folder, line = line.removeprefix("cd ").split(" && ")
                monkeypatch.chdir(copy / folder)
            capsys.readouterr()
            assert cli.main(words_of(line)) == 0, line
            output = capsys.readouterr().out
            monkeypatch.chdir(copy)
            ran.append(line)
    assert len(ran) >= 10


@pytest.mark.usefixtures("copy", "spark")
def test_make_run_shows_the_shop_alone_without_a_warning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    recipe = subprocess.run(["make", "-n", "run"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    run, show = re.findall(r"^\.venv\S*/bin/(runner (?:run|show).*)", recipe, re.MULTILINE)
    assert cli.main(words_of(run)) == 0
    said = capsys.readouterr()
    assert re.findall(r"START streaming model (\w+)", said.err) == ["shop_to_changelog"]
    assert "WARN=0 ERROR=0 SKIP=0" in said.err and not re.search(r"warning|dead_letter \(", said.err)
    assert cli.main(words_of(show)) == 0
    shown = capsys.readouterr().out
    sent = [json.loads(line) for line in (ROOT / "formats/cases/canal/shop.messages.jsonl").read_text().splitlines()]
    tables = [message["table"] for message in sent if not message["isDdl"] for _ in message["data"] or ()]
    assert re.findall(r"^\w* +\| (\w+) +\| ", shown, re.MULTILINE) == ["table_name", *tables[:5]]


def test_every_target_of_make_that_is_named_is_there() -> None:
    pages = "".join(path.read_text() for path in ROOT.glob("*.md"))
    named = set(re.findall(r"(?:^|`)make (\w+)", pages, re.MULTILINE))
    assert named <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"run", "check", "quick", "test", "snapshots"} <= named


# A package that is served for one Spark or for one version of it -> its column in tools/spark/versions.
PACKAGES = {
    r"delta-spark_(\S+?)_2\.13:([\d.]+)": "delta",
    r"iceberg-spark-runtime-(\S+?)_2\.13:([\d.]+)": "iceberg",
    r"spark-sql-(kafka-0-10)_2\.13:([\d.]+)": "kafka",
    r"(pyspark) (\d[\d.]*\d)": "pyspark",
    r"(Spark) (\d\.\d\.\d)": "pyspark",
}


@pytest.mark.parametrize("pattern", PACKAGES)
def test_pages_name_versions_that_are_tested(pattern: str) -> None:
    text = "".join(path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))))
    named = set(re.findall(pattern, text))
    tested = {getattr(one, PACKAGES[pattern]) for one in SPARKS}
    assert named and {version for _, version in named} <= tested
    assert {spark for spark, _ in named if spark[0].isdigit()} <= {one.spark for one in SPARKS}


def test_the_project_needs_the_first_spark_that_is_tested() -> None:
    assert f'"pyspark=={SPARKS[0].pyspark}"' in (ROOT / "pyproject.toml").read_text()
    for one in SPARKS[1:]:
        assert f"pyspark=={one.pyspark} " in (ROOT / f"tools/spark/{one.spark}.lock").read_text()


def test_the_project_shown_is_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = [text for _, name, text in blocks(ROOT / "README.md") if name == "project.yml"]
    (tmp_path / "project.yml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["ls"]) == 0
    assert "messages_to_changelog" in capsys.readouterr().out


def test_the_picture_of_a_terminal_shows_what_the_readme_shows() -> None:
    lines = [html.unescape(line) for line in re.findall(r'xml:space="preserve">(.*)</text>', TERMINAL.read_text())]
    plain = [re.sub(r"</?tspan[^>]*>", "", line) for line in lines]
    assert [line for line in plain if line.startswith("$ ")][:2] == ["$ runner init demo && cd demo", "$ runner run"]
    (shown,) = [text for kind, _, text in blocks(ROOT / "README.md") if kind == "text" and "status_before" in text]
    cells = [[cell.strip() for cell in line.split("|")] for line in shown.splitlines() if line.startswith("update")]
    drawn = [[cell.strip() for cell in line.split("|")] for line in plain if line.startswith("update")]
    # The README has the name of the table too.
    assert drawn == [[op, *others] for op, _, *others in cells] and len(drawn) == 3


def test_the_picture_of_the_whole_counts_the_formats() -> None:
    told = re.search(r"(\d+) formats are built in", (ROOT / "docs/pictures/whole.svg").read_text())
    assert told and int(told[1]) == len(list((ROOT / "formats").glob("*.yml")))


def test_links_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert link.startswith("https://") or (page.parent / link).exists(), f"{page.name}: {link}"


def documented(page: str) -> set[str]:
    """All that stands in `code` on a page, word by word."""
    return {
        word
        for code in re.findall(r"`([^`\n]+)`", (ROOT / "docs" / page).read_text())
        for word in re.findall(r"[\w.+-]+", code)
    }


def test_every_command_and_flag_is_documented() -> None:
    words = documented("runner.md")
    for name, command in cli.runner.commands.items():
        assert name in words, name
        for parameter in command.params:
            for flag in parameter.opts if isinstance(parameter, click.Option) else ():
                assert flag in words or (flag.startswith("-") and len(flag) == 2), f"{name} {flag}"


def test_every_project_key_is_documented() -> None:
    words = documented("runner.md") | documented("models.md")
    for key in [
        *project.KEYS,
        *notifications.HOOK_KEYS,
        *notifications.OPENLINEAGE_KEYS,
        *notifications.STATES,
        *targets.TARGET_KEYS,
        *settings.SETTINGS,
        *STORAGES,
        *nodes.SCHEMA_CHANGES,
        *dead_letters.DEAD_LETTER_KEYS,
        *dead_letters.WAIVER_KEYS,
        *sources.SOURCE_KEYS,
        *sources.TABLE_KEYS,
        *properties.PROPERTY_KEYS,
        *properties.MODEL_KEYS,
        *properties.COLUMN_KEYS,
        *properties.UNIT_TEST_KEYS,
        *properties.EXPOSURE_KEYS,
        *(key for keys in (sources.GROUP_KEYS, sources.GROUP_TABLE_KEYS, sources.SOURCE_CONFIG_KEYS) for key in keys),
        *(key for keys in (sources.EXTERNAL_KEYS, sources.FRESHNESS_KEYS, sources.AGE_KEYS) for key in keys),
        *settings.SEED_SETTINGS,
        *properties.TEST_SETTINGS,
        *tests.BESIDE,
        *nodes.MATERIALIZATIONS,
    ]:
        assert key in words, key


def test_every_key_of_selectors_is_documented() -> None:
    keys = (*select.SELECTOR_KEYS, *select.TERM_KEYS, *select.SETS)
    assert set(keys) <= documented("selection.md") | {"name", "description"}
    assert {*state.STATUSES, *state.STATES} <= {
        word.partition(":")[2] for word in re.findall(r"`(\w+:[\w.]+)`", (ROOT / "docs/selection.md").read_text())
    }


def test_every_macro_that_may_be_replaced_is_documented() -> None:
    assert set(REPLACEABLE) <= documented("runner.md")


def test_every_key_of_kafka_of_targets_and_of_registries_is_documented() -> None:
    for page, keys in (
        ("kafka.md", topics.KAFKA_KEYS),
        ("targets.md", targets.TARGET_KEYS),
        ("formats.md", (*spec_schemas.REGISTRY_KEYS, *spec.FRAMINGS)),
    ):
        assert set(keys) <= documented(page), page


def test_every_word_of_a_spec_is_documented() -> None:
    words = documented("formats.md") | {word.split(".")[-1] for word in documented("formats.md")}
    for key in [
        *spec_reading.KEYS,
        *spec_reading.KEY_WORDS,
        *spec_messages.MESSAGE_KEYS,
        *spec_messages.RECORD_KEYS,
        *spec.PARTS,
        *spec_values.IMAGE_KEYS,
        *spec.TEXT_COLUMNS,
        *spec.TIME_COLUMNS,
        *spec.VALUE_READERS,
        *spec.OPS,
        *spec.IMAGE_TEXTS,
    ]:
        assert key in words, key
    text = (ROOT / "docs/formats.md").read_text()
    for key in (
        *spec_lines.LINE_KEYS,
        *spec.IMAGE_KINDS,
        *spec.ORDER_READERS,
        *spec.TIME_READERS,
        "first",
        "cases",
        "missing",
        "else",
        "empty",
        "is_not",
        "has",
        "lacks",
        "holds",
        "loads",
        "over",
        "unknown",
    ):
        assert key in text, key


def test_the_contract_is_documented() -> None:
    text = (ROOT / "docs/changelog.md").read_text()
    named = re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE)
    columns = [column.strip("` ") for cell in named for column in cell.split(",")]
    assert [c for c in columns if c in contract.COLUMNS and c not in ("changelog",)] == list(contract.COLUMNS)
    for view in parse.VIEWS:
        assert f"`{view}`" in text


def test_every_reason_of_dead_letters_is_documented_and_has_a_case() -> None:
    section = (ROOT / "docs/changelog.md").read_text().split("## Reasons")[1].split("## ")[0]
    reasons = set(re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE))
    in_macros = set(
        re.findall(
            r"'((?:not|no|empty|trailing|unknown|statement|row|uneven|bad|schema)-[a-z0-9-]+)'",
            "".join(path.read_text() for path in (ROOT / "macros").rglob("*.sql")),
        )
    )
    in_functions = set(
        re.findall(
            r'"((?:bad|schema)-[a-z]+)"',
            "".join(path.read_text() for path in (ROOT / "runner/functions/avro").glob("*.py")),
        )
    )
    in_specs = set(
        re.findall(r"dead_letter: ([\w-]+)", "".join(path.read_text() for path in (ROOT / "formats").glob("*.yml")))
    )
    assert in_macros | in_functions | in_specs | {"empty"} == reasons
    assert {*contract.REASONS} == in_macros | in_functions | {"empty"}
    cases = "\n".join(path.read_text() for path in (ROOT / "formats/cases").rglob("*.rows.yml"))
    # A blank line of a file is no message, so no case can have an empty one: see the table of raw messages in
    # test_streams.
    assert {reason for reason in reasons if f"reason: {reason}\n" not in cases} <= {"empty"}


def test_nothing_points_outside_the_project() -> None:
    for path in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "runner").rglob("*.py"),
        *(ROOT / "macros").glob("*.sql"),
        *(ROOT / "formats").glob("*.yml"),
    ]:
        assert "/shared" not in path.read_text() and "/work" not in path.read_text(), path
