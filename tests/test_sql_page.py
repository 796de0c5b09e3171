"""docs/sql.md does what it says, from the model to SQL of one's own in a catalog."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.pages import ROOT, Block, commands, run_block, section, write_files

pytestmark = pytest.mark.usefixtures("interpreted")
PAGE, READING = ROOT / "docs/sql.md", ROOT / "docs/reading.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose catalog is a metastore, as the page on reading has it."""
    made = tmp_path / "shop"
    (made / "messages").mkdir(parents=True)
    shutil.copyfile(ROOT / "formats/cases/canal/shop.messages.jsonl", made / "messages/shop.jsonl")
    write_files(section(READING, "By name, in a catalog") + section(READING, "spark-sql"), made)
    return made


def asked(heading: str) -> list[tuple[Block, Block]]:
    """The commands under a heading with what they print."""
    found = [block for block in section(PAGE, heading) if block.kind in ("sh", "text")]
    return list(zip(found[::2], found[1::2]))


@pytest.mark.soak
def test_calls_in_models_on_the_command_line_and_in_a_catalog(folder: Path) -> None:
    write_files(section(PAGE, "Calling them"), folder)
    (run,) = [block for block in section(READING, "By name, in a catalog") if block.kind == "sh"]
    run_block(run, folder)
    questions = asked("Calling them") + asked("In SQL of your own")
    assert len(questions) == 3
    for ask, says in questions:
        assert says.text.strip() in run_block(ask, folder), ask.text
    # A view in the catalog calls what the catalog keeps.
    ask = Block("sh", "", 'spark-sql --properties-file spark-defaults.conf -e "select * from changes.payments"')
    assert run_block(ask, folder).startswith('{"id":"1001"}\t')


def test_functions_of_ones_own(
    folder: Path, runner: Any, spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (folder / "project.yml").write_text("name: own\n")
    write_files(section(PAGE, "Your own"), folder)
    monkeypatch.chdir(folder)
    (words,) = commands(section(PAGE, "Your own"))
    assert runner(*words).code == 0
    wrong = folder / "macros/functions/orders.yml"
    wrong.write_text(wrong.read_text().replace("expect: false", "expect: true"))
    assert runner(*words).code == 1


def test_functions_in_python_for_a_session(folder: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (code,) = [block for block in section(PAGE, "In SQL of your own") if block.kind == "python"]
    session = spark.fresh().session
    exec(code.text, {"spark": session})
    ((found,),) = session.sql("select java_bytes(map('v', '[1,2]'))['v']").collect()
    assert found == "AQI="
