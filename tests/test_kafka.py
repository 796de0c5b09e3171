"""Messages of a real Kafka broker: each lands once, with where it was; what is lost is said. Everything through the
command line.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from runner.cli import main
from runner.engine.kafka import topics_now
from runner.project.topics import KAFKA_KEYS
from tests import pages
from tests.conftest import Ran
from tests.engines import HOST, PASSWORD, PLAIN_LOGIN, Broker, Message, free_port
from tests.spark_fixtures import batches_in_files, rows
from tests.test_streams import message

pytestmark = [pytest.mark.engines, pytest.mark.usefixtures("interpreted", "lean")]

Runner = Callable[..., Ran]
Write = Callable[..., Path]
Captured = pytest.CaptureFixture[str]


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


def landed(capsys: Captured, name: str) -> list[str]:
    """The messages of a source that have landed, each as topic/partition/offset=id, in order."""
    return all_landed(capsys, name)[name]


def all_landed(capsys: Captured, *names: str) -> dict[str, list[str]]:
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


# --- what is read: topics, partitions, where to begin and to end


BEGAN = 1_700_000_000_000
# Sources that differ in what they read; each topic has the messages 0 to 5 in two partitions, one a second.
REACH: dict[str, dict] = {
    "early": {},
    "late": {"starting": "latest"},
    "instant": {"starting": "2023-11-14T22:13:23Z"},
    "offsets": {"starting": {"offsets": {0: 2, 1: 1}}},
    "ends": {"ending": {"ends": {0: 1}}},
    "ends_instant": {"ending": "2023-11-14T22:13:24Z", "arrival": "timestamp"},
    "batched": {"batch": 2},
    "listed": {"topics": ["listed_a", "listed_b"]},
    "matched": {"pattern": r"shop\..*"},
}
# Sources that go on after their first messages are lost, taken back or tampered with: the numbers that they begin with.
STORIES: dict[str, range] = {
    **dict.fromkeys(("aged", "aged_allowed", "remade", "remade_allowed"), range(5)),
    "noticed": range(3),
    "begun": range(3),
    "tampered": range(6),
}
KAFKA = {
    **REACH,
    **{name: {"allow_loss": "allowed" in name} for name in STORIES},
    "tampered": {"batch": 1},
    "origins": {},
    "transactions": {},
}
ORIGINS = [
    Message(
        message(1).encode(),
        "schlüssel".encode(),
        [("trace", b"a"), ("trace", b""), ("bytes", b"\xff\x00"), ("ü", "ß".encode())],
        timestamp=BEGAN,
    ),
    Message(None, b"\xfe\xff", [("none", None)], timestamp=BEGAN + 1),
    Message(b"", None, timestamp=BEGAN + 2),
]


@pytest.fixture(scope="module")
def landed_once(
    broker: Broker, spark: object, interpreted: None, lean: None, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A project of all these sources, after their first build."""
    each_second = {number: BEGAN + 1000 * number for number in range(6)}
    both = [one for number, at in each_second.items() for one in numbered([number], number % 2, timestamp=at)]
    sent = dict.fromkeys([*REACH.keys() - {"listed", "matched"}, "listed_a", "listed_b", "shop.orders"], both)
    sent |= {name: numbered(numbers) for name, numbers in STORIES.items()}
    for name, messages in sent.items():
        broker.create_topic(name, partitions=2)
        broker.produce(name, messages)
    broker.create_topic("origins")
    broker.produce("origins", ORIGINS)
    broker.create_topic("transactions")
    transactions = [(numbered([0, 1]), True), (numbered([2]), False), (numbered([3]), True)]
    broker.produce_in_transactions("transactions", transactions)
    folder = tmp_path_factory.mktemp("landed")
    write_project(folder, broker)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["build", "-s", " ".join(f"source:{name}+1" for name in KAFKA)]) == 1
    results = json.loads((folder / "target/run_results.json").read_text())["results"]
    wrong = [one["unique_id"] for one in results if one["status"] not in ("success", "pass")]
    assert wrong == ["model.kafka.origins_to_changelog"], "one of three messages is a dead letter"
    return folder


@pytest.fixture
def landing(landed_once: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Goes to that project; a call changes settings of some of its sources until the test ends."""
    monkeypatch.chdir(landed_once)
    yield lambda **changed: write_project(landed_once, broker, **changed)
    write_project(landed_once, broker)


def write_project(folder: Path, broker: Broker, **changed: dict) -> None:
    sources = [source(broker, name, **settings | changed.get(name, {})) for name, settings in KAFKA.items()]
    (folder / "project.yml").write_text(project_of(*sources)["project.yml"])


def test_what_a_source_reads(broker: Broker, landing: Callable[..., None], runner: Runner, capsys: Captured) -> None:
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
    by_time = "select distinct seq.arrival as a from ends_instant_to_changelog where after['id'] = '3'"
    assert rows(capsys, by_time) == [{"a": [BEGAN + 3000, 1, 1]}]
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
    landing(ends={"ending": {"ends": {0: 2}}})
    ran = runner("run", "-s", "ends_to_changelog")
    assert ran.code == 1 and "the end of" in ran.err and "--full-refresh" in ran.err
    assert runner("build", "-s", "source:ends+1", "--full-refresh").code == 0
    assert landed(capsys, "ends") == ["ends/0/0=0", "ends/0/1=2", *(f"ends/{place}" for place in all_six[3:])]


@pytest.mark.usefixtures("landing")
def test_where_a_message_was(capsys: Captured) -> None:
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
    told = (
        ("2023-11-14T22:13:20Z", "schlüssel", headers),
        ("2023-11-14T22:13:20.001Z", "/v8=", [{"key": "none", "value": None}]),
        ("2023-11-14T22:13:20.002Z", None, None),
    )
    assert [row["origin"] for row in found] == [
        {**place, "offset": number, "timestamp": at, "key": key, "headers": sent}
        for number, (at, key, sent) in enumerate(told)
    ]


@pytest.mark.usefixtures("landing")
def test_messages_of_transactions_that_were_aborted_are_none(capsys: Captured) -> None:
    # A mark behind each transaction takes an offset.
    assert landed(capsys, "transactions") == ["transactions/0/0=0", "transactions/0/1=1", "transactions/0/5=3"]


# --- what is lost


def delete_topic(broker: Broker, name: str) -> None:
    broker._admin.deleteTopics([name]).all().get()
    while name in set(broker._admin.listTopics().names().get()):
        time.sleep(0.05)


@pytest.mark.usefixtures("landing")
def test_messages_that_are_gone_are_said(broker: Broker, runner: Runner, capsys: Captured) -> None:
    names = ("aged", "aged_allowed", "remade", "remade_allowed")
    models = [f"{name}_to_changelog" for name in names]
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
    assert "aged/0 offsets 5 to 6; runner run --full-refresh" in ran.err and "allow_loss: true" in ran.err
    assert "remade was deleted and created again, with offsets from 0; runner run --full-refresh" in ran.err
    assert "gone from Kafka before they were read: aged_allowed/0 offsets 5 to 6\n" in ran.err
    assert "gone from Kafka before they were read: remade_allowed was deleted" in ran.err
    assert landed(capsys, "aged") == [f"aged/0/{n}={n}" for n in range(5)]
    assert landed(capsys, "aged_allowed") == [f"aged_allowed/0/{n}={n}" for n in (*range(5), 7, 8, 9)]
    # What was removed can be neither found missing nor taken for landed.
    ran = runner("test", "--data", "-s", "aged_allowed_to_changelog")
    assert ran.code == 0 and "WARN=1" in ran.err and "cannot be counted again: 5 of aged_allowed/0" in ran.err, ran.err
    # Once said, it is not said again.
    assert "gone from Kafka" not in runner("run", "-s", "remade_allowed_to_changelog").err
    refused = runner("build", "-s", "source:aged+1 source:remade+1", "--full-refresh")
    assert (
        refused.code == 2 and refused.err.count("error[source-not-replayable]") == 2 and "aged/0 offset" in refused.err
    )
    assert landed(capsys, "aged") == [f"aged/0/{n}={n}" for n in range(5)]
    assert runner("build", "-s", "source:aged+1 source:remade+1", "--full-refresh", "--accept-loss").code == 0
    assert landed(capsys, "remade") == [f"remade/0/{n}={n + 20}" for n in range(8)]


def test_what_only_spark_has_noticed_is_said_too(
    broker: Broker, landing: Callable[..., None], runner: Runner, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention may remove messages between the look before a run and the reading; what is begun then is landed by the
    next run, if loss is allowed.
    """
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
    landing(noticed={"allow_loss": True})
    ran = runner("run", "-s", "noticed_to_changelog")
    assert ran.code == 0 and "noticed/0 offsets 3 to 4" in ran.err, ran.err
    assert landed(capsys, "noticed") == [f"noticed/0/{n}={n}" for n in (0, 1, 2, 5, 6)]


@pytest.mark.usefixtures("landing")
def test_a_batch_that_was_begun_is_landed_first(broker: Broker, runner: Runner, capsys: Captured) -> None:
    """As after a kill: the connector cannot by itself go on behind such a batch."""
    for name in ("0", ".0.crc"):
        (Path("warehouse/_checkpoints/begun_to_changelog/commits") / name).unlink()
    broker.produce("begun", numbered(range(3, 5)))
    ran = runner("build", "-s", "source:begun+1")
    assert ran.code == 0, ran.err
    assert landed(capsys, "begun") == [f"begun/0/{n}={n}" for n in range(5)]
    assert batches_in_files(Path("warehouse/begun_to_changelog")) == {0: [0], 1: [1]}


@pytest.mark.usefixtures("landing")
def test_conserved_finds_what_did_not_land_and_what_landed_twice(runner: Runner) -> None:
    """Of one message that is missing and one that is there twice, the counts agree."""
    table = Path("warehouse/tampered_to_changelog")
    of_batch = {
        json.loads(line)["path"].rsplit("/", 1)[-1]: path
        for path in (table / "_spark_metadata").glob("[0-9]")
        for line in path.read_text().splitlines()[1:]
    }
    files = {name: next(table.rglob(name)) for name in of_batch}
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
    page = pages.ROOT / "docs/kafka.md"
    # Dumps are tried in test_dumps.
    dumps = pages.section(page, "Dumps in files")
    found = [block for block in pages.blocks(page) if block not in dumps]
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


def test_messages_of_a_topic_are_read_again(broker: Broker, project: Write, runner: Runner, capsys: Captured) -> None:
    """With a corrected spec, where the topic still has them: a reader without texts of its own needs no more."""
    broker.create_topic("corrected")
    broker.produce("corrected", numbered(range(4)))
    spec = "extends: lean\nabout: ours\n"
    project({**project_of(source(broker, "corrected", format="mine")), "formats/mine.yml": f"{spec}drop: [id]\n"})
    runner("run")
    broker.delete_records("corrected", {0: 1})
    Path("formats/mine.yml").write_text(spec)
    ran = runner("reprocess", "corrected")
    assert "3 messages of corrected read again" in ran.err and "1 message more" in ran.err, ran.err
    found = rows(capsys, "select origin.offset as at, after['id'] as id, batch from corrected_to_changelog order by 1")
    assert [(one["at"], one["id"]) for one in found] == [(0, None), (1, "1"), (2, "2"), (3, "3")]
    assert [one["batch"] for one in found] == [0, 1, 1, 1]
    broker.delete_records("corrected", {0: 4})
    Path("formats/mine.yml").write_text(f"{spec}drop: [id]\n")
    refused = runner("reprocess", "corrected")
    assert refused.code == 2 and "error[raw-not-kept]" in refused.err
