"""`parse --output case` writes the rows of a case, and the case is green."""

from __future__ import annotations

import base64
import json
import shutil

import pytest

from runner.run.compare import case_text
from runner.yaml_text import read_yaml
from tests.pages import ROOT, blocks

CASES = ROOT / "formats" / "cases"
# Texts that YAML could take for something else.
TEXTS = ["null", "~", "", "1", "1e3", "no", "2024-05-01", "a: b", "- a", "# a", "'", '"', " a ", "a\nb", "\n", "\r\n",
         "\x85", "\u2028", "中", "😀", "a\tb", "\\", "{a}", "[a]", "*a", "&a", "!a", "|", ">", "%", "@", "`", "=", "<<",
         "\x00", "\x1b", "\ufeff", "x" * 300]  # fmt: skip


def test_every_text_comes_back(tmp_path) -> None:
    row = {"kind": "row", "after": {f"c{n}": text for n, text in enumerate(TEXTS)}, "changed": TEXTS, "raw": "a\n\nb\n"}
    names = {"kind": "row", "before": dict.fromkeys(TEXTS)}
    file = tmp_path / "a.rows.yml"
    file.write_text(case_text("a: b", {"zone": "+08:00", "schema": []}, [row, names]), encoding="utf-8")
    read = read_yaml(file).value
    assert (read["about"], read["source"], read["rows"]) == ("a: b", {"zone": "+08:00"}, [row, names])


def test_rows_look_as_in_other_cases() -> None:
    seq = {"generation": 0, "phase": 1, "position": [7], "arrival": [0], "row": 0}
    rows = [{"kind": "row", "op": "insert", "key": {"id": "1"}, "seq": seq, "changed": ["a", "b"], "old_key": None}]
    assert case_text("x", {}, [*rows, {"kind": "control"}]).splitlines() == [
        "about: x",
        "rows:",
        "  - kind: row",
        "    op: insert",
        "    key: {id: '1'}",
        "    seq: {generation: 0, phase: 1, position: [7], row: 0}",
        "    changed: [a, b]",
        "",
        "  - kind: control",
    ]
    assert case_text("x", {}, []) == "about: x\nrows: []\n"


def one_word(name: str) -> str:
    return name.partition(".")[0]


@pytest.mark.usefixtures("spark")
def test_what_parse_writes_is_a_case_that_passes(project, runner) -> None:
    """Of sources with a zone, with a schema, and with messages that cannot be understood."""
    root = project()
    shop, hostile = "canal/shop.messages.jsonl", "canal/escapes.messages.jsonl"
    avro = next((CASES / "drs_avro").glob("*.messages.base64"))
    shutil.copy(CASES / "drs_avro/record.avsc", root)
    for format_name, source, words in (
        ("canal", CASES / shop, ["--zone", "Asia/Shanghai"]),
        ("canal", CASES / hostile, []),
        ("drs_avro", avro, ["--schema", "record.avsc"]),
    ):
        folder = root / "formats/cases" / format_name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder)
        ran = runner("parse", format_name, str(folder / source.name), "--output", "case", *words)
        assert ran.code == 0, ran.err
        (folder / f"{one_word(source.name)}.rows.yml").write_text(ran.out)
    ran = runner("test", "--unit", "-s", "format:canal format:drs_avro")
    assert ran.code == 0 and "PASS=3 " in ran.err, ran.err
    written = root / "formats/cases/canal/shop.rows.yml"
    own = read_yaml(CASES / "canal/shop.rows.yml").value
    # What is null is stated by hand.
    stated = [{column: value for column, value in row.items() if value is not None} for row in own["rows"]]
    assert read_yaml(written).value["rows"] == stated and read_yaml(written).value["source"] == own["source"]
    written.write_text(written.read_text().replace("Li Wei", "Li Bai", 1))
    ran = runner("test", "--unit", "-s", "canal.shop")
    assert ran.code == 1 and "row 0: after: got" in ran.err


@pytest.mark.usefixtures("spark")
def test_the_case_on_the_page_of_formats_passes(project, runner) -> None:
    """With the format that the README shows, and a message in it."""
    ((name, rows),) = [(name, text) for _, name, text in blocks(ROOT / "docs/formats.md") if "/cases/" in name]
    ((spec, text),) = [(name, text) for _, name, text in blocks(ROOT / "README.md") if name.startswith("formats/")]
    header = {"opType": "U", "database": "shop", "table": "orders", "pkNames": ["id"]}
    message = {**header, "data": [{"id": "1001", "status": "paid"}], "updateBefore": [{"status": "created"}]}
    project({name: rows, name.replace(".rows.yml", ".messages.jsonl"): json.dumps(message), spec: text})
    ran = runner("test", "--unit", "-s", "format:acme")
    assert ran.code == 0 and "PASS unit test acme.paid" in ran.err, ran.err


@pytest.mark.usefixtures("spark")
def test_only_columns_that_are_stated_are_compared(project, runner) -> None:
    message = {"type": "INSERT", "database": "d", "table": "t", "data": [{"id": "1"}, {"id": "2"}], "pkNames": ["id"]}
    folder = "formats/cases/canal"
    stated = {"a": "{id: 1}, op: insert", "b": "{id: 1}"}
    for name, first in stated.items():
        rows = f"rows:\n  - {{after: {first}}}\n  - {{after: {{id: 2}}, op: insert}}\n"
        project({f"{folder}/{name}.messages.jsonl": json.dumps(message), f"{folder}/{name}.rows.yml": rows})
    ran = runner("test", "--unit", "-s", "format:canal")
    assert ran.code == 1 and "PASS=1 " in ran.err and "PASS unit test canal.a" in ran.err
    assert 'row 0: op: got "insert", expected null' in ran.err


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--kind", "row"], "usage"), (["--limit", "1"], "usage")],
)
def test_a_case_has_all_rows(project, runner, words: list[str], code: str) -> None:
    project({"in/1.jsonl": "{}"})
    ran = runner("parse", "canal", "in/1.jsonl", "--output", "case", *words)
    assert ran.code == 2 and f"error[{code}]" in ran.err


@pytest.mark.usefixtures("spark")
def test_messages_that_are_not_lines_are_no_case(project, runner) -> None:
    record = base64.b64encode(b"x")
    project({"in/1.json": '{\n"type": "INSERT"\n}', "in/1.bin": record, "in/2.jsonl": "\ufeff{}"})
    for format_name, file in (("canal", "in/1.json"), ("canal", "in/2.jsonl"), ("oceanbase_avro", "in/1.bin")):
        ran = runner("parse", format_name, file, "--output", "case")
        assert ran.code == 2 and "error[case-messages]" in ran.err and ran.out == "", file
