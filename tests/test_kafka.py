"""Messages of a real Kafka broker: each lands once, with where it was; what is lost is said. Everything through the
command line.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from runner.engine.kafka import topics_now
from runner.functions.avro.files import FileMessage
from runner.project.topics import KAFKA_KEYS
from runner.run.compare import as_text, in_order
from runner.run.documents import messages_of
from runner.yaml_text import read_yaml
from tests import engines, pages
from tests.conftest import Ran
from tests.engines import HOST, PASSWORD, PLAIN_LOGIN, Broker, Message, free_port
from tests.spark_fixtures import batches_in_files, rows
from tests.test_streams import message

pytestmark = pytest.mark.usefixtures("interpreted", "lean")
ROOT = Path(__file__).parent.parent
FORMATS = sorted(path.name for path in (ROOT / "formats/cases").iterdir())

Runner = Callable[..., Ran]
Write = Callable[..., Path]


def source(broker: Broker, name: str, **kafka: object) -> str:
    """A source of messages that `message` makes; its topic bears its name if no other is given."""
    topics = {} if "pattern" in kafka else {"topics": name}
    return json.dumps(
        {"name": name, "format": kafka.pop("format", "lean"), "kafka": {"servers": broker.servers, **topics, **kafka}}
    )


def project_of(*sources: str) -> dict[str, str]:
    return {"project.yml": "name: kafka\nsources:\n" + "".join(f"  - {one}\n" for one in sources)}


def numbered(numbers: Iterable[int], partition: int = 0, **other: object) -> list[Message]:
    return [Message(message(number).encode(), str(number).encode(), partition=partition, **other) for number in numbers]


def landed(capsys: pytest.CaptureFixture[str], name: str) -> list[str]:
    """The messages of a source that have landed, each as topic/partition/offset=id, in order."""
    return all_landed(capsys, name)[name]


def all_landed(capsys: pytest.CaptureFixture[str], *names: str) -> dict[str, list[str]]:
    """The same of several sources, from one query."""
    each = (
        f"select '{name}' as name, origin, after['id'] as id from {name}_to_changelog where seq.row = 0"
        for name in names
    )
    query = f"""select name, concat(origin.topic, '/', origin.partition, '/', origin.offset, '=', id) as id
        from ({" union all ".join(each)}) order by origin.topic, origin.partition, origin.offset"""
    found: dict[str, list[str]] = {name: [] for name in names}
    for row in rows(capsys, query):
        found[row["name"]].append(row["id"])
    return found


# --- every format


def samples(name: str) -> list[bytes]:
    """The messages of all cases of a format."""
    paths = sorted((ROOT / "formats/cases" / name).glob("*.messages.base64")) or sorted(
        (ROOT / "formats/cases" / name).glob("*.messages.jsonl")
    )
    return [
        one.raw
        for path in paths
        for one in messages_of(path.name, path.read_bytes(), "avro" if path.suffix == ".base64" else "json")
    ]


# What becomes of a message does not depend on where it was: one format in JSON, one whose SQL calls Python, one in
# Avro.
IN_FILES_TOO = ("canal", "drs_mongodb", "oceanbase_avro")


def is_binary(name: str) -> bool:
    return any((ROOT / "formats/cases" / name).glob("*.base64"))


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
        ending, written = (
            ("base64", [base64.b64encode(one) for one in messages]) if is_binary(name) else ("jsonl", messages)
        )
        files[f"in/{name}.{ending}"] = b"\n".join(written) + b"\n"
        schema = (
            {"schema": str(ROOT / f"formats/cases/{name}/record.avsc")}
            if (ROOT / f"formats/cases/{name}/record.avsc").is_file()
            else {}
        )
        if name in IN_FILES_TOO:
            sources += [json.dumps({"name": f"file_{name}", "format": name, "files": f"in/{name}.{ending}", **schema})]
        sources += [
            json.dumps(
                {
                    "name": f"topic_{name}",
                    "format": name,
                    "kafka": {"servers": broker.servers, "topics": f"samples_{name}"},
                    **schema,
                }
            )
        ]
        broker.create_topic(f"samples_{name}", partitions=2)
        broker.produce(f"samples_{name}", [Message(one, partition=number % 2) for number, one in enumerate(messages)])
    project(files | project_of(*sources))
    return found


def test_every_message_of_a_format_lands_as_it_does_from_files(
    messages_of_formats: dict[str, list[bytes]], runner: Runner
) -> None:
    ran = runner("run", "-s", "file_* topic_*")
    assert ran.code == 0, ran.err
    ran = runner("test", "--data", "-s", "topic_*")
    assert ran.code == 0 and f"PASS={len(messages_of_formats)} " in ran.err, ran.err
    sources = [f"topic_{name}" for name in messages_of_formats] + [f"file_{name}" for name in IN_FILES_TOO]
    shown = runner(
        "show",
        "--inline",
        " union all ".join(f"select * from {name}_to_changelog" for name in sources),
        "--limit",
        "100000",
        "--output",
        "json",
    ).out
    found: dict[str, list[dict]] = {}
    for row in map(json.loads, shown.rstrip("\n").split("\n")):  # not by lines: texts have marks of other lines in them
        found.setdefault(row.pop("source"), []).append(row)
    for name, messages in messages_of_formats.items():
        landed = sorted(
            found[f"topic_{name}"],
            key=lambda row: (row["origin"]["offset"], row["origin"]["partition"], row["seq"]["row"]),
        )
        places = Counter(
            (row["origin"]["topic"], row["origin"]["partition"], row["origin"]["offset"])
            for row in landed
            if row["seq"]["row"] == 0
        )
        assert places == Counter((f"samples_{name}", number % 2, number // 2) for number in range(len(messages)))
        assert [row["seq"]["arrival"] for row in landed] == [[row["origin"]["offset"]] for row in landed]
        # The cases of some formats have no message that is refused.
        assert "row" in {row["kind"] for row in landed}, name
        if name in IN_FILES_TOO:
            from_files = sorted(found[f"file_{name}"], key=lambda row: (row["seq"]["arrival"], row["seq"]["row"]))
            assert [bare(row) for row in from_files] == [bare(row) for row in landed], name


# What a record's key, topic and headers decide of a row, and some more.
OF_RECORDS = ("kind", "op", "table_name", "key", "old_key", "before", "after", "changed", "tx_id", "reason")


def test_records_with_keys_land_as_their_cases_say(broker: Broker, project: Write, runner: Runner) -> None:
    """The cases of formats that read the key, the topic or the headers of a record."""
    cases = {
        f"{path.parent.name}_{path.name.removesuffix('.records.jsonl')}": path
        for path in sorted((ROOT / "formats/cases").glob("*/*.records.jsonl"))
    }
    sources, landing, taken = [], {}, set()
    for name, path in cases.items():
        found = messages_of(path.name, path.read_bytes(), "json")
        topics = {one.record.topic for one in found if one.record}
        topic = topics.pop() or name
        # Messages of several topics have no order among each other; a topic has the messages of one case.
        if topics or topic in taken:
            continue
        landing[name] = path
        taken.add(topic)
        broker.create_topic(topic)
        broker.produce(topic, map(produced, found))
        declared = read_yaml(path.with_name(path.name.replace(".records.jsonl", ".rows.yml"))).value.get("source", {})
        given = {"name": name, "format": path.parent.name, "kafka": {"servers": broker.servers, "topics": topic}}
        sources.append(json.dumps(given | declared))
    project(project_of(*sources))
    assert len(landing) >= 8 and runner("run", "-s", "config.materialized:streaming").code == 0
    shown = ("show", "--output", "json", "--limit", "1000", "--inline")
    for name, path in landing.items():
        sql = f"select * from {name}_to_changelog order by seq.arrival, seq.row"
        landed = [json.loads(line) for line in runner(*shown, sql).out.splitlines()]
        case = read_yaml(path.with_name(path.name.replace(".records.jsonl", ".rows.yml")))
        expected = [{key: value for key, value in row.items() if key in OF_RECORDS} for row in case.value["rows"]]
        assert in_order([as_text(row) for row in landed], expected) == [], name


def produced(message: FileMessage) -> Message:
    record = message.record
    assert record
    headers = [(key, (value or "").encode()) for key, value in record.headers]
    return Message(message.raw or None, record.key.encode() if record.key else None, headers, 0)


def bare(row: dict) -> dict:
    """What a row says of its message, wherever that was."""
    seq = {part: value for part, value in row["seq"].items() if part != "arrival"}
    return {
        **{
            key: value
            for key, value in row.items()
            if key not in ("run_id", "batch", "loaded_at", "landed_on", "origin")
        },
        "seq": seq,
    }


# --- what is read: topics, partitions, where to begin and to end


BEGAN = 1_700_000_000_000


@pytest.fixture(scope="module")
def reach(broker: Broker) -> list[str]:
    """Sources that differ in what they read; each topic has the messages 0 to 5 in two partitions, one a second."""

    def both() -> list[Message]:
        return [
            Message(message(number).encode(), timestamp=BEGAN + 1000 * number, partition=number % 2)
            for number in range(6)
        ]

    for name in (
        "early",
        "late",
        "instant",
        "offsets",
        "ends",
        "ends_instant",
        "batched",
        "listed_a",
        "listed_b",
        "shop.orders",
    ):
        broker.create_topic(name, partitions=2)
        broker.produce(name, both())
    return [
        source(broker, "early"),
        source(broker, "late", starting="latest"),
        source(broker, "instant", starting="2023-11-14T22:13:23Z"),
        source(broker, "offsets", starting={"offsets": {0: 2, 1: 1}}),
        source(broker, "ends", ending={"ends": {0: 1}}),
        source(broker, "ends_instant", ending="2023-11-14T22:13:24Z", arrival="timestamp"),
        source(broker, "batched", batch=2),
        source(broker, "listed", topics=["listed_a", "listed_b"]),
        source(broker, "matched", pattern=r"shop\..*"),
    ]


def test_what_a_source_reads(
    broker: Broker,
    reach: list[str],
    spark: object,
    project: Write,
    runner: Runner,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project(project_of(*reach))
    ran = runner("build", "--exclude", "changelog+")
    assert ran.code == 0 and "WARN=0" in ran.err, ran.err
    all_six = ["0/0=0", "0/1=2", "0/2=4", "1/0=1", "1/1=3", "1/2=5"]
    first = {
        "early": all_six,
        "late": [],
        "instant": ["0/2=4", "1/1=3", "1/2=5"],
        "offsets": ["0/2=4", "1/1=3", "1/2=5"],
        "ends": ["0/0=0", *all_six[3:]],
        "ends_instant": ["0/0=0", "0/1=2", "1/0=1", "1/1=3"],
        "batched": all_six,
    }
    assert all_landed(capsys, *first, "listed", "matched") == {
        **{name: [f"{name}/{place}" for place in expected] for name, expected in first.items()},
        "listed": [f"listed_{which}/{place}" for which in "ab" for place in all_six],
        "matched": [f"shop.orders/{place}" for place in all_six],
    }
    assert rows(capsys, "select distinct seq.arrival as a from ends_instant_to_changelog where after['id'] = '3'") == [
        {"a": [BEGAN + 3000, 1, 1]}
    ]
    assert len(list(Path("warehouse/_checkpoints/batched_to_changelog/commits").glob("[0-9]*"))) == 3
    assert batches_in_files(Path("warehouse/batched_to_changelog")) == {number: [number] for number in range(3)}
    # More messages, more partitions, more topics.
    for name in ("early", "late", "ends"):
        broker.produce(name, numbered([6]))
    broker.add_partitions("early", 3)
    broker.produce("early", numbered([7], 2))
    broker.create_topic("shop.items")
    broker.produce("shop.items", numbered([8]))
    ran = runner("build", "-s", "source:early+1 source:late+1 source:ends+1 source:matched+1")
    assert ran.code == 0 and "WARN=0" in ran.err, ran.err
    assert all_landed(capsys, "early", "late", "ends", "matched") == {
        "early": [f"early/{place}" for place in [*all_six[:3], "0/3=6", *all_six[3:], "2/0=7"]],
        "late": ["late/0/3=6"],
        "ends": [f"ends/{place}" for place in first["ends"]],
        "matched": ["shop.items/0/0=8", *(f"shop.orders/{place}" for place in all_six)],
    }
    assert len(rows(capsys, "select distinct run_id from early_to_changelog")) == 2
    # The end cannot be moved: what was passed over is not read again.
    project(project_of(source(broker, "ends", ending={"ends": {0: 2}})))
    ran = runner("run", "-s", "ends_to_changelog")
    assert ran.code == 1 and "the end of" in ran.err and "--full-refresh" in ran.err
    assert runner("build", "-s", "source:ends+1", "--full-refresh").code == 0
    assert landed(capsys, "ends") == ["ends/0/0=0", "ends/0/1=2", *(f"ends/{place}" for place in all_six[3:])]


def test_where_a_message_was(
    broker: Broker, spark: object, project: Write, runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = [
        Message(
            message(1).encode(),
            "schlüssel".encode(),
            [("trace", b"a"), ("trace", b""), ("bytes", b"\xff\x00"), ("ü", "ß".encode())],
            timestamp=BEGAN,
        ),
        Message(None, b"\xfe\xff", [("none", None)], timestamp=BEGAN + 1),
        Message(b"", None, timestamp=BEGAN + 2),
    ]
    broker.create_topic("origins")
    broker.produce("origins", sent)
    project(project_of(source(broker, "origins")))
    assert runner("build", "-s", "source:origins+1").code == 0
    found = rows(capsys, "select kind, op, reason, origin from origins_to_changelog order by seq.arrival")
    assert [(row["kind"], row["op"], row["reason"]) for row in found] == [
        ("row", "insert", None),
        ("control", "tombstone", None),
        ("dead_letter", None, "empty"),
    ]
    headers = [
        {"key": "trace", "value": "a"},
        {"key": "trace", "value": ""},
        {"key": "bytes", "value": "/wA="},
        {"key": "ü", "value": "ß"},
    ]
    place = {"topic": "origins", "partition": 0, "file": None, "block": None}
    assert [row["origin"] for row in found] == [
        {**place, "offset": 0, "timestamp": "2023-11-14T22:13:20Z", "key": "schlüssel", "headers": headers},
        {
            **place,
            "offset": 1,
            "timestamp": "2023-11-14T22:13:20.001Z",
            "key": "/v8=",
            "headers": [{"key": "none", "value": None}],
        },
        {**place, "offset": 2, "timestamp": "2023-11-14T22:13:20.002Z", "key": None, "headers": None},
    ]


def test_messages_of_transactions_that_were_aborted_are_none(
    broker: Broker, spark: object, project: Write, runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create_topic("transactions")
    produce_in_transactions(broker, "transactions", [([0, 1], True), ([2], False), ([3], True)])
    project(project_of(source(broker, "transactions")))
    ran = runner("build", "-s", "source:transactions+1")
    assert ran.code == 0 and "WARN=0" in ran.err, ran.err
    # A mark behind each transaction takes an offset.
    assert landed(capsys, "transactions") == ["transactions/0/0=0", "transactions/0/1=1", "transactions/0/5=3"]


def produce_in_transactions(broker: Broker, topic: str, transactions: list[tuple[list[int], bool]]) -> None:
    producer = broker._kafka.clients.producer.KafkaProducer(
        engines.producer_settings(broker.servers) | {"transactional.id": topic}
    )
    producer.initTransactions()
    for numbers, is_good in transactions:
        producer.beginTransaction()
        for one in numbered(numbers):
            producer.send(broker._record(topic, one))
        producer.flush()
        producer.commitTransaction() if is_good else producer.abortTransaction()
    producer.close()


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(5_000_000, id="5 MB", marks=pytest.mark.soak),
        pytest.param(50_000_000, id="50 MB", marks=pytest.mark.soak),
    ],
)
def test_a_big_message_lands_beside_small_ones(broker: Broker, project: Write, size: int) -> None:
    """In a JVM of its own, with the memory that the page names."""
    name = f"big_{size}"
    big = json.loads(message(1))
    big["data"][0]["text"] = "x" * size
    broker.create_topic(name)
    broker.produce(name, [*numbered([0]), Message(json.dumps(big).encode()), *numbered([2])])
    target = (
        f"target: t\ntargets: {{t: {{jars: {ROOT}/.jars/spark/*.jar, spark: {{spark.driver.memory: 4g, "
        f"spark.master: 'local[2]'}}}}}}\n"
    )
    folder = project({"project.yml": target + project_of(source(broker, name))["project.yml"]})
    query = f"select after['id'] as id, length(after['text']) as size from {name}_to_changelog order by seq.arrival"
    shown = pages.run_block(
        pages.Block("sh", "", f'runner build -q -s "source:{name}+1"\nrunner show --output json --inline "{query}"\n'),
        folder,
    )
    assert [json.loads(line) for line in shown.splitlines()] == [
        {"id": "0", "size": None},
        {"id": "1", "size": size},
        {"id": "2", "size": None},
    ]


# --- what is lost


def delete_topic(broker: Broker, name: str) -> None:
    broker._admin.deleteTopics([name]).all().get()
    while name in set(broker._admin.listTopics().names().get()):
        time.sleep(0.05)


def test_messages_that_are_gone_are_said(
    broker: Broker, spark: object, project: Write, runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("aged", "aged_allowed", "remade", "remade_allowed")
    for name in names:
        broker.create_topic(name, partitions=2)
        broker.produce(name, numbered(range(5)))

    def sources(**of_all: object) -> dict[str, str]:
        return project_of(*(source(broker, name, allow_loss="allowed" in name, **of_all) for name in names))

    project(sources())
    models = [f"{name}_to_changelog" for name in names]
    assert runner("run", "-s", " ".join(models)).code == 0
    for name in names[:2]:
        broker.produce(name, numbered(range(5, 10)))
        broker.delete_records(name, {0: 7})
    for name in names[2:]:
        delete_topic(broker, name)
        broker.create_topic(name, partitions=2)
        broker.produce(name, numbered(range(20, 28)))
    began = time.monotonic()
    ran = runner("run", "-s", " ".join(models))
    assert ran.code == 1 and time.monotonic() - began < 60
    assert "aged/0 offsets 5 to 6; --full-refresh" in ran.err and "allow_loss: true" in ran.err
    assert "remade was deleted and created again, with offsets from 0; --full-refresh" in ran.err
    assert "gone from Kafka before they were read: aged_allowed/0 offsets 5 to 6\n" in ran.err
    assert "gone from Kafka before they were read: remade_allowed was deleted" in ran.err
    assert landed(capsys, "aged") == [f"aged/0/{n}={n}" for n in range(5)]
    assert landed(capsys, "aged_allowed") == [f"aged_allowed/0/{n}={n}" for n in (*range(5), 7, 8, 9)]
    # What was removed can be neither found missing nor taken for landed.
    ran = runner("test", "--data", "-s", "aged_allowed_to_changelog")
    assert ran.code == 0 and "WARN=1" in ran.err and "cannot be counted again: 5 of aged_allowed/0" in ran.err, ran.err
    # Once said, it is not said again.
    assert "gone from Kafka" not in runner("run", "-s", "remade_allowed_to_changelog").err
    assert runner("build", "-s", "source:aged+1 source:remade+1", "--full-refresh").code == 0
    assert landed(capsys, "remade") == [f"remade/0/{n}={n + 20}" for n in range(8)]


def test_what_only_spark_has_noticed_is_said_too(
    broker: Broker,
    spark: object,
    project: Write,
    runner: Runner,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Retention may remove messages between the look before a run and the reading; what is begun then is landed by the
    next run, if loss is allowed.
    """
    broker.create_topic("noticed")
    broker.produce("noticed", numbered(range(3)))
    project(project_of(source(broker, "noticed")))
    assert runner("run", "-s", "noticed_to_changelog").code == 0
    broker.produce("noticed", numbered(range(3, 7)))
    broker.delete_records("noticed", {0: 5})
    with monkeypatch.context() as patch:
        looks: list[object] = []
        patch.setattr(
            "runner.run.landing.topics_now",
            lambda *asked: (looks.append(asked), topics_now(*asked) if len(looks) > 1 else None)[1],
        )
        ran = runner("run", "-s", "noticed_to_changelog")
    assert ran.code == 1 and "noticed/0 offsets 3 to 4" in ran.err, ran.err
    project(project_of(source(broker, "noticed", allow_loss=True)))
    ran = runner("run", "-s", "noticed_to_changelog")
    assert ran.code == 0 and "noticed/0 offsets 3 to 4" in ran.err, ran.err
    assert landed(capsys, "noticed") == [f"noticed/0/{n}={n}" for n in (0, 1, 2, 5, 6)]


def test_a_batch_that_was_begun_is_landed_first(
    broker: Broker, spark: object, project: Write, runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a kill: the connector cannot by itself go on behind such a batch."""
    broker.create_topic("begun")
    broker.produce("begun", numbered(range(3)))
    project(project_of(source(broker, "begun")))
    assert runner("run", "-s", "begun_to_changelog").code == 0
    for name in ("0", ".0.crc"):
        (Path("warehouse/_checkpoints/begun_to_changelog/commits") / name).unlink()
    broker.produce("begun", numbered(range(3, 5)))
    ran = runner("build", "-s", "source:begun+1")
    assert ran.code == 0, ran.err
    assert landed(capsys, "begun") == [f"begun/0/{n}={n}" for n in range(5)]
    assert batches_in_files(Path("warehouse/begun_to_changelog")) == {0: [0], 1: [1]}


def test_conserved_finds_what_did_not_land_and_what_landed_twice(
    broker: Broker, spark: object, project: Write, runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one message that is missing and one that is there twice, the counts agree."""
    broker.create_topic("tampered")
    broker.produce("tampered", numbered(range(6)))
    project(project_of(source(broker, "tampered", batch=1)))
    assert runner("run", "-s", "tampered_to_changelog").code == 0
    assert runner("test", "--data", "-s", "tampered_to_changelog").code == 0
    of_batch = {
        json.loads(line)["path"].rsplit("/", 1)[-1]: path
        for path in Path("warehouse/tampered_to_changelog/_spark_metadata").glob("[0-9]")
        for line in path.read_text().splitlines()[1:]
    }
    files = {name: next(Path("warehouse/tampered_to_changelog").rglob(name)) for name in of_batch}
    first, _, third, *_ = sorted(of_batch, key=lambda name: int(of_batch[name].name))
    shutil.copy(files[third], files[first])
    for path in files[first].parent.glob(".*.crc"):
        path.unlink()
    ran = runner("test", "--data", "-s", "tampered_to_changelog")
    assert ran.code == 1, ran.err
    assert "messages_read: 6, messages_landed: 6, not_landed: 1, landed_twice: 1, first_offset: 0" in ran.err


# --- errors and secrets


def test_what_cannot_be_read_is_said_at_once(
    broker: Broker, spark: object, project: Write, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.engine.kafka.PATIENCE_SECONDS", 2)
    monkeypatch.setenv("LOADER_PASSWORD", PASSWORD)
    broker.create_topic("orders.known")
    broker.create_topic("guarded")
    broker.produce("guarded", numbered([1]))

    def guarded(name: str, jaas: str) -> str:
        options = {
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": f"{PLAIN_LOGIN} {jaas}",
        }
        return source(broker, name, topics="guarded", servers=broker.secured, options=options)

    project(
        project_of(
            source(broker, "nobody", servers=f"{HOST}:{free_port()}"),
            source(broker, "nowhere", servers="broker.invalid:9092"),
            source(broker, "unknown", topics="orders.knwon"),
            guarded("right", "username='loader' password='{{ env_var(\"LOADER_PASSWORD\") }}';"),
            guarded("wrong", "username='loader' password='{{ env_var(\"LOADER_PASSWORD\") }}x';"),
            guarded("garbled", "username='loader' password='oh'{{ env_var(\"LOADER_PASSWORD\") }}';"),
        )
    )
    began = time.monotonic()
    ran = runner("run", "--exclude", "changelog+")
    assert ran.code == 1 and time.monotonic() - began < 60
    said = dict(re.findall(r"ERROR streaming model (\w+)_to_changelog .*\n((?:      .*\n)*)", ran.err))
    assert sorted(said) == ["garbled", "nobody", "nowhere", "unknown", "wrong"], ran.err
    assert "does not answer at" in said["nobody"] and "does not answer at broker.invalid:9092" in said["nowhere"]
    assert 'there is no topic "orders.knwon"' in said["unknown"] and 'did you mean "orders.known"?' in said["unknown"]
    assert "cannot be read: Authentication failed" in said["wrong"]
    assert '"kafka.sasl.jaas.config" cannot be read' in said["garbled"]
    # Secrets are nowhere, not in pieces either.
    written = [path for folder in ("target", "warehouse") for path in Path(folder).rglob("*") if path.is_file()]
    assert len(written) > 10 and [path for path in written if PASSWORD.encode() in path.read_bytes()] == []
    assert PASSWORD not in ran.err


def test_a_connector_that_is_not_there_is_named(spark: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from runner.engine.errors import QueryFailed
    from runner.engine.kafka import read_kafka

    class Reader:
        def format(self, name: str) -> Reader:
            return spark.session.readStream.format("kafka.DefaultSource")  # type: ignore[attr-defined]

    with pytest.raises(QueryFailed, match=r"no connector for Kafka: .*org.apache.spark:spark-sql-kafka-0-10_2.13:\d"):
        read_kafka(Reader(), {})


# --- the page of the docs


def test_the_page_is_right(
    broker: Broker, spark: object, tmp_path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`build` in a process of its own, which finds the connector as the page says; what follows, in this one."""
    page = ROOT / "docs/kafka.md"
    found = pages.blocks(page)
    for topic in ("shop.orders", "shop.items"):
        if topic not in set(broker._admin.listTopics().names().get()):
            broker.create_topic(topic)
    broker.produce("shop.items", numbered([77]))
    pages.write_files(found, tmp_path)
    monkeypatch.setenv("KAFKA_SERVERS", broker.servers)
    build, *others = pages.commands(found)
    pages.run_block(pages.Block("sh", "", shlex.join(["runner", *build])), tmp_path)
    monkeypatch.chdir(tmp_path)
    shown = ""
    for words in others:
        ran = runner(*words)
        assert ran.code == 0, ran.err
        shown += ran.out
    assert re.search(r'insert *\| t *\| \{"id":"77"\} *\| shop.items', shown), shown
    assert set(re.findall(r"^\| `(\w+)` \|", page.read_text(), re.MULTILINE)) == set(KAFKA_KEYS)
