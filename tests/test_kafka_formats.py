"""Messages of formats land from Kafka as they do from files, with what their records say beside the value; big messages
land too.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.functions.avro.files import FileMessage
from runner.run.compare import as_text, in_order
from runner.run.documents import messages_of
from runner.yaml_text import read_yaml
from tests import pages
from tests.conftest import Ran
from tests.engines import Broker, Message
from tests.sparks import JARS
from tests.test_kafka import numbered, project_of, source
from tests.test_streams import message

pytestmark = [pytest.mark.engines, pytest.mark.usefixtures("interpreted", "lean")]
CASES = pages.ROOT / "formats/cases"
FORMATS = sorted(path.name for path in CASES.iterdir())
# What becomes of a message does not depend on where it was: one format in JSON, one whose SQL calls Python, one in
# Avro.
IN_FILES_TOO = ("canal", "drs_mongodb", "oceanbase_avro")

Runner = Callable[..., Ran]
Write = Callable[..., Path]


def samples(name: str) -> list[bytes]:
    """The messages of all cases of a format."""
    kind, encoding = ("base64", "avro") if is_binary(name) else ("jsonl", "json")
    paths = sorted((CASES / name).glob(f"*.messages.{kind}"))
    return [one.raw for path in paths for one in messages_of(path.name, path.read_bytes(), encoding)]


def is_binary(name: str) -> bool:
    return any((CASES / name).glob("*.base64"))


def shown(runner: Runner, sql: str) -> list[dict]:
    ran = runner("show", "--inline", sql, "--limit", "100000", "--output", "json")
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.rstrip("\n").split("\n")]  # texts have marks of other lines in them


@pytest.fixture(params=[pytest.param(IN_FILES_TOO, id="some"), pytest.param(FORMATS, id="all", marks=pytest.mark.soak)])
def messages_of_formats(
    request: pytest.FixtureRequest, broker: Broker, spark: object, project: Write
) -> dict[str, list[bytes]]:
    """A project with a source a format, which reads a topic of two partitions, and for some of them one that reads the
    same messages from files; these messages.
    """
    found = {name: samples(name) for name in request.param}
    files, sources = {}, []
    for name, messages in found.items():
        ending = "base64" if is_binary(name) else "jsonl"
        written = [base64.b64encode(one) for one in messages] if is_binary(name) else messages
        files[f"in/{name}.{ending}"] = b"\n".join(written) + b"\n"
        own = CASES / name / "record.avsc"
        of_format = {"format": name, "dead_letters": {"fail": None}, **({"schema": str(own)} if own.is_file() else {})}
        if name in IN_FILES_TOO:
            sources.append({"name": f"file_{name}", **of_format, "files": f"in/{name}.{ending}"})
        kafka = {"servers": broker.servers, "topics": f"samples_{name}"}
        sources.append({"name": f"topic_{name}", **of_format, "kafka": kafka})
        broker.create_topic(f"samples_{name}", partitions=2)
        broker.produce(f"samples_{name}", [Message(one, partition=number % 2) for number, one in enumerate(messages)])
    project(files | project_of(*map(json.dumps, sources)))
    return found


def test_every_message_of_a_format_lands_as_it_does_from_files(
    messages_of_formats: dict[str, list[bytes]], runner: Runner
) -> None:
    ran = runner("run", "-s", "file_* topic_*")
    assert ran.code == 0, ran.err
    ran = runner("test", "--data", "-s", "topic_*")
    assert ran.code == 0 and f"PASS={len(messages_of_formats)} " in ran.err, ran.err
    sources = [f"topic_{name}" for name in messages_of_formats] + [f"file_{name}" for name in IN_FILES_TOO]
    found: dict[str, list[dict]] = {}
    for row in shown(runner, " union all ".join(f"select * from {name}_to_changelog" for name in sources)):
        found.setdefault(row.pop("source"), []).append(row)
    for name, messages in messages_of_formats.items():
        landed = sorted(found[f"topic_{name}"], key=place)
        first = [place(row)[:2] for row in landed if row["seq"]["row"] == 0]
        assert Counter(first) == Counter((number // 2, number % 2) for number in range(len(messages)))
        assert {row["origin"]["topic"] for row in landed} == {f"samples_{name}"}
        assert [row["seq"]["arrival"] for row in landed] == [[row["origin"]["offset"]] for row in landed]
        # The cases of some formats have no message that is refused.
        assert "row" in {row["kind"] for row in landed}, name
        if name in IN_FILES_TOO:
            from_files = sorted(found[f"file_{name}"], key=lambda row: (row["seq"]["arrival"], row["seq"]["row"]))
            assert [bare(row) for row in from_files] == [bare(row) for row in landed], name


def place(row: dict) -> tuple[int, int, int]:
    return row["origin"]["offset"], row["origin"]["partition"], row["seq"]["row"]


def bare(row: dict) -> dict:
    """What a row says of its message, wherever that was."""
    of_the_place = ("run_id", "batch", "loaded_at", "landed_on", "origin")
    seq = {part: value for part, value in row["seq"].items() if part != "arrival"}
    return {**{key: value for key, value in row.items() if key not in of_the_place}, "seq": seq}


# What a record's key, topic and headers decide of a row, and some more.
OF_RECORDS = ("kind", "op", "table_name", "key", "old_key", "before", "after", "changed", "tx_id", "reason")


def test_records_with_keys_land_as_their_cases_say(
    broker: Broker, spark: object, project: Write, runner: Runner
) -> None:
    """The cases of formats that read the key, the topic or the headers of a record."""
    sources, expected, taken = [], {}, set()
    for path in sorted(CASES.glob("*/*.records.jsonl")):
        found = messages_of(path.name, path.read_bytes(), "json")
        name = f"{path.parent.name}_{path.name.removesuffix('.records.jsonl')}"
        topics = {one.record.topic for one in found if one.record}
        topic = topics.pop() or name
        # Messages of several topics have no order among each other; a topic has the messages of one case.
        if topics or topic in taken:
            continue
        taken.add(topic)
        broker.create_topic(topic)
        broker.produce(topic, map(produced, found))
        case = read_yaml(path.with_name(path.name.replace(".records.jsonl", ".rows.yml"))).value
        expected[name] = [{key: value for key, value in row.items() if key in OF_RECORDS} for row in case["rows"]]
        given = {"name": name, "format": path.parent.name, "kafka": {"servers": broker.servers, "topics": topic}}
        given |= {"dead_letters": {"fail": None}}
        sources.append(json.dumps(given | case.get("source", {})))
    project(project_of(*sources))
    assert len(expected) >= 8 and runner("run", "-s", "config.materialized:streaming").code == 0
    every = " union all ".join(f"select * from {name}_to_changelog" for name in expected)
    rows = shown(runner, f"select * from ({every}) order by seq.arrival, seq.row")
    for name, wanted in expected.items():
        assert in_order([as_text(row) for row in rows if row["source"] == name], wanted) == [], name


def produced(message: FileMessage) -> Message:
    record = message.record
    assert record
    headers = [(key, (value or "").encode()) for key, value in record.headers]
    return Message(message.raw or None, record.key.encode() if record.key else None, headers, 0)


@pytest.mark.soak
@pytest.mark.parametrize(
    "size",
    [pytest.param(5_000_000, id="5 MB"), pytest.param(50_000_000, id="50 MB")],
)
def test_a_big_message_lands_beside_small_ones(broker: Broker, project: Write, size: int) -> None:
    """In a JVM of its own, with the memory that the page names."""
    name = f"big_{size}"
    big = json.loads(message(1))
    big["data"][0]["text"] = "x" * size
    broker.create_topic(name)
    broker.produce(name, [*numbered([0]), Message(json.dumps(big).encode()), *numbered([2])])
    spark = "{spark.driver.memory: 4g, spark.master: 'local[2]'}"
    target = f"target: t\ntargets: {{t: {{jars: {JARS}/spark/*.jar, spark: {spark}}}}}\n"
    folder = project({"project.yml": target + project_of(source(broker, name))["project.yml"]})
    query = f"select after['id'] as id, length(after['text']) as size from {name}_to_changelog order by seq.arrival"
    text = f'runner build -q -s "source:{name}+1"\nrunner show --output json --inline "{query}"\n'
    printed = pages.run_block(pages.Block("sh", "", text), folder)
    assert [json.loads(line) for line in printed.splitlines()] == [
        {"id": "0", "size": None},
        {"id": "1", "size": size},
        {"id": "2", "size": None},
    ]
