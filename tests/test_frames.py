"""Messages of binary frames: taken apart as they were put together, and however they are damaged, none is lost."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runner.functions.frames import FrameLayout, framed_events
from runner.functions.udfs import escaped_bytes
from tests.random_avro import damaged
from tests.spark_fixtures import rows

LAYOUT = FrameLayout("0000000000000001", "", 8)


def framed(frames: Sequence[bytes], starts: bytes = b"") -> bytes:
    return starts + b"".join(struct.pack(">q", len(frame)) + frame for frame in frames)


def key_of(frames: Sequence[bytes]) -> bytes:
    return framed(frames, struct.pack(">q", 1))


def as_origin(key: bytes) -> str:
    """The key as the changelog's origin has it."""
    try:
        return key.decode()
    except UnicodeDecodeError:
        return base64.b64encode(key).decode()


SENT = st.dictionaries(st.sampled_from("abc"), st.sampled_from([1, "x", None, "中" * 99, [1.5], {"u": {}}]), min_size=1)
DOCUMENTS = st.builds(json.dumps, SENT, ensure_ascii=st.booleans()).map(str.encode)


@given(st.lists(st.tuples(DOCUMENTS, DOCUMENTS | st.just(b"")), min_size=1, max_size=3))
def test_frames_come_apart_as_they_were_put_together(events: list[tuple[bytes, bytes]]) -> None:
    key, value = key_of([one for one, _ in events]), framed([other for _, other in events])
    found = framed_events(value, as_origin(key), LAYOUT)
    expected = [f'{{"key": {one.decode()}, "value": {other.decode() or "null"}}}' for one, other in events]
    assert [event.text for event in found] == expected
    assert not any(event.damage for event in found)


def test_what_is_sent_is_not_written_anew() -> None:
    key, value = b'{ "ts":18446744073709551615 }', b'{"v":1.10E+2, "w":"\\u00e9\xc3\xa9", "v":0.30}'
    (event,) = framed_events(framed([value]), as_origin(key_of([key])), LAYOUT)
    assert event.text == f'{{"key": {key.decode()}, "value": {value.decode()}}}'


def record_of(line: str | None) -> Any:
    """The key and the value of a record in a line."""
    parts = json.loads(line or "")
    assert list(parts) == ["key_base64", "value_base64"]
    return tuple(part if part is None else base64.b64decode(part, validate=True) for part in parts.values())


ONE, TWO = b'{"t":1}', b'{"u":2}'
DAMAGE = [
    (key_of([ONE]), framed([TWO])[:-1], "value: frame 1 has 7 bytes, but 6 follow"),
    (key_of([ONE])[:-1], framed([TWO]), "key: frame 1 has 7 bytes, but 6 follow"),
    (key_of([ONE, ONE]), framed([TWO]), "2 frames in the key, 1 in the value"),
    (key_of([ONE]), framed([TWO]) + b"\0\0", "value: ends within the length of frame 2"),
    (framed([ONE], struct.pack(">q", 2)), framed([TWO]), "begins with 0000000000000002, not with 0000000000000001"),
    (b"\0\0", framed([TWO]), "key: begins with 0000, not with 0000000000000001"),
    (b"", framed([TWO]), "key: begins with nothing, not with"),
    (key_of([]), b"", "no frames"),
    (key_of([ONE]), b"", "1 frames in the key, 0 in the value"),
    (key_of([ONE]) + b"\xff" * 8, framed([TWO, TWO]), "key: frame 2 has 18446744073709551615 bytes, but 0 follow"),
]


@pytest.mark.parametrize(("key", "value", "damage"), DAMAGE)
def test_damage_says_what_does_not_add_up(key: bytes, value: bytes, damage: str) -> None:
    (event,) = framed_events(value, as_origin(key), LAYOUT)
    assert event.damage and damage in event.damage
    assert record_of(event.text) == (key, value)
    # What was kept of it can be read again, with the same result.
    assert framed_events((event.text or "").encode(), None, LAYOUT) == [event]


@pytest.mark.parametrize("bad", [b"\xff", b"{", b"{} {}", b'{}, "value": {}', b" ", b'{"a":"\n"}', b"[" * 100_000])
def test_an_event_that_is_no_json_is_damaged_alone(bad: bytes) -> None:
    """Were it put into a text with its neighbour, it could change what that says."""
    value = framed([TWO, bad, TWO])
    found = framed_events(value, as_origin(key_of([ONE] * 3)), LAYOUT)
    assert [event.damage for event in found] == [None, "event 2 is not JSON", None]
    assert record_of(found[1].text) == (key_of([ONE]), framed([bad]))
    (event,) = framed_events(framed([TWO]), as_origin(key_of([bad])), LAYOUT)
    assert event.damage == "event 1 is not JSON"


def test_a_message_without_key_or_value() -> None:
    assert framed_events(None, as_origin(key_of([ONE])), LAYOUT) == [(None, None)]
    assert framed_events(None, None, LAYOUT) == [(None, None)]
    assert framed_events(b'{"key": {}, "value": 1.0}', None, LAYOUT) == [('{"key": {}, "value": 1.0}', None)]
    (event,) = framed_events(b"\xff", None, LAYOUT)
    assert event.damage and record_of(event.text) == (None, b"\xff")
    assert framed_events((event.text or "").encode(), None, LAYOUT) == [event]


def test_the_record_of_a_line() -> None:
    record = {"key_base64": base64.b64encode(key_of([ONE])).decode()}
    value = base64.b64encode(framed([TWO])).decode()

    def found(line: dict[str, Any]) -> Any:
        return framed_events(json.dumps(line).encode(), None, LAYOUT)

    assert found(record | {"value_base64": value}) == [('{"key": {"t":1}, "value": {"u":2}}', None)]
    assert found(record | {"value_base64": None}) == [(None, None)]
    for line in (record, {"key_base64": "?", "value_base64": value}, {"key_base64": 1, "value_base64": value}):
        assert found(line) == [(json.dumps(line), None)]


def as_sent_or_damaged(data: bytes) -> st.SearchStrategy[bytes]:
    return st.just(data) | damaged(data) | st.binary(max_size=60)


@st.composite
def messages(draw: Any) -> tuple[bytes, bytes]:
    """Keys and values, of which one or both may be damaged."""
    events = draw(st.lists(st.tuples(DOCUMENTS, DOCUMENTS), max_size=3))
    key, value = key_of([one for one, _ in events]), framed([other for _, other in events])
    return draw(as_sent_or_damaged(key)), draw(as_sent_or_damaged(value))


def test_no_damage_loses_a_message_or_raises() -> None:
    """Each message gives an event, and each event can be read again: as JSON with both parts, or as the bytes sent."""
    damages = []

    @given(messages())
    def check(sent: tuple[bytes, bytes]) -> None:
        key, value = sent
        found = framed_events(value, as_origin(key), LAYOUT)
        assert found
        for event in found:
            if event.damage:
                kept = record_of(event.text)[1]
                assert kept == value or kept[8:] in value
            else:
                assert json.loads(event.text or "").keys() == {"key", "value"}
        damages.append(any(event.damage for event in found))

    check()
    assert len(damages) / 4 < sum(damages) < len(damages)


def go_quoted(data: bytes) -> str:
    """Bytes as Go's strconv.Quote writes them, without the quotes, if no character of them is printable but ASCII."""
    letters = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}
    parts = (f"\\{letters[b]}" if b in letters else chr(b) if 32 <= b < 127 else f"\\x{b:02x}" for b in data)
    return "".join(parts)


@given(st.binary(max_size=40))
@example(bytes(range(256)))
def test_escaped_bytes_are_the_bytes(data: bytes) -> None:
    assert base64.b64decode(escaped_bytes(go_quoted(data)) or "") == data


@pytest.mark.parametrize("text", ["\\", "a\\", "\\q", "\\x4", "\\u12", "\\U00110000", "\\400", None])
def test_escapes_that_are_none(text: str | None) -> None:
    assert escaped_bytes(text) is None


PROJECT = """
sources:
  - {name: events, format: ticdc_open, table: dump, dead_letters: {fail: null}}
"""
LANDED = """
select kind, op, seq.row, reason, detail, after['id'] as id, raw
from events_to_changelog order by seq.arrival, seq.row
"""


@pytest.mark.usefixtures("spark", "interpreted")
def test_records_of_a_topic_land_each_with_its_events(project, runner, capsys) -> None:
    """Keys of any bytes: those that are UTF-8 and those that are not, and one that is null."""
    key = b'{"ts":415508878783938562,"scm":"test","tbl":"%s","t":1}'
    table, long_table = key % b"t1", key % (b"t" * 200)
    row = b'{"u":{"id":{"t":8,"h":true,"f":130,"v":18446744073709551615}}}'
    records = [
        (key_of([table, table]), framed([row, row.replace(b"18446744073709551615", b"2")])),
        (key_of([long_table]), framed([row])),
        (key_of([table]), framed([row])[:-2]),
        (b"\xff\xfe", framed([row])),
        (key_of([b'{"ts":1,"t":3}']), framed([b""])),
        (key_of([table]), None),
        (None, b"\xff"),
    ]
    folder = project({"project.yml": PROJECT})
    (folder / "dump").mkdir()
    columns = {
        "key": [one for one, _ in records],
        "value": [other for _, other in records],
        "topic": ["t"] * len(records),
        "partition": pyarrow.array([0] * len(records), pyarrow.int32()),
        "offset": list(range(len(records))),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "dump" / "part.parquet")
    ran = runner("run")
    assert ran.code == 0, ran.out + ran.err
    found = [tuple(one.values()) for one in rows(capsys, LANDED)]
    assert [one[:-1] for one in found] == [
        ("row", "insert", 0, None, None, "18446744073709551615"),
        ("row", "insert", 1, None, None, "2"),
        ("row", "insert", 0, None, None, "18446744073709551615"),
        ("dead_letter", None, 0, "bad-frames", "value: frame 1 has 62 bytes, but 60 follow", None),
        ("dead_letter", None, 0, "bad-frames", "key: begins with fffe, not with 0000000000000001", None),
        ("control", "watermark", 0, None, None, None),
        ("control", "tombstone", 0, None, None, None),
        ("dead_letter", None, 0, "bad-frames", "no key, and the value is not UTF-8", None),
    ]
    kept = [record_of(one[-1]) for one in found if one[0] == "dead_letter"]
    assert kept == [records[2], records[3], records[6]]
    # Each message counts once, however many events it holds.
    assert runner("test", "--data").code == 0
