"""Messages that nobody should send: none of them stops a source, none is lost, and what is no JSON is never a row."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from runner.spec.formats import FormatFolders
from tests.hostile_json import in_columns, in_fields, is_json, mutants, objects_of_cases
from tests.pages import ROOT
from tests.spark_fixtures import rows

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

# A zone whose clocks change, so that local times are read too.
FORMATS = {
    path.stem: "America/New_York" for path in sorted((ROOT / "formats").glob("*.yml")) if "avro" not in path.stem
}
del FORMATS["oms_before_3_3"]
# Its values of one class are read as they are sent, if they cannot be read otherwise.
AS_SENT = "{name: as_sent, format: {extends: drs_sql, values: {timestamp: [zoned, as_sent]}}, files: in/drs_sql.jsonl}"
NOT_READ = ("not-json", "trailing-text", "not-an-object", "empty")
LANDED = "select kind, reason from {name}_to_changelog where seq.row = 0 order by seq.arrival"


def test_hostile_messages_land_each_once(tmp_path: Path, project, runner, capsys) -> None:
    folders = FormatFolders((ROOT / "formats",))
    sent = {}
    for name in FORMATS:
        objects, spec = objects_of_cases(ROOT / "formats/cases" / name), folders.load(name)
        some = random.Random(name).sample(objects, min(len(objects), 6))
        sent[name] = [*in_fields(some, spec), *in_columns(some, spec), *mutants(objects, 300, seed=len(name))]
    source = "  - {{name: {0}, format: {0}, files: in/{0}.jsonl, zone: {1}}}\n"
    texts = {f"in/{name}.jsonl": "".join(f"{one}\n" for one in lines) for name, lines in sent.items()}
    sources = "".join(source.format(*pair) for pair in FORMATS.items())
    project({"project.yml": f"sources:\n{sources}  - {AS_SENT}\n", **texts})
    ran = runner("run")
    assert ran.code == 0, ran.out + ran.err
    wrong = []
    for name, lines in sent.items():
        landed = rows(capsys, LANDED.format(name=name))
        assert len(landed) == len(lines)
        for line, row in zip(lines, landed):
            unread = row["kind"] == "dead_letter" and row["reason"] in NOT_READ
            if unread == is_json(line):
                wrong.append((name, row["kind"], row["reason"], line[:2_000]))
    assert not wrong
