"""Messages that name their schemas by number: from a folder, and from a registry, one of our own that speaks the HTTP
API. fastavro writes the messages.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from runner.functions.avro import layout, registry
from runner.functions.avro.layout import Layout, Numbers, Slot
from runner.functions.avro.messages import Found
from runner.functions.avro.registry import RegistryFailed, RegistrySchemas, Written
from tests.avro_cases import encoded
from tests.avro_types import map_of, record_type
from tests.schema_registry import Registry, registry_server


def framed(number: int, schema: dict, value: dict, size: int = 4) -> bytes:
    return b"\0" + number.to_bytes(size, "big") + encoded(schema, value)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PAUSE_SECONDS", 0)


@pytest.fixture
def host() -> Iterator[Registry]:
    with registry_server() as running:
        yield running


# --- the registry


FIRST = record_type("change", kind="string", id="int")


def test_what_was_answered_is_not_asked_again_by_anybody_on_the_machine(host: Registry, tmp_path: Path) -> None:
    host.add(7, FIRST)
    schemas = RegistrySchemas(layout.Registry((host.url,)), str(tmp_path))
    assert schemas.get(7) == Written(json.dumps(FIRST))
    assert schemas.get(8) is None
    assert host.calls == ["/schemas/ids/7", "/schemas/ids/8"]
    host.answers.clear()
    again = RegistrySchemas(layout.Registry((host.url,), login="other:password"), str(tmp_path))
    assert again.get(7) == schemas.get(7) == Written(json.dumps(FIRST))
    assert len(host.calls) == 2
    # Another registry has other schemas under the same numbers.
    assert RegistrySchemas(layout.Registry((host.url + "/other",)), str(tmp_path)).folder != schemas.folder


@pytest.mark.parametrize("damage", ["", "{", '{"schema": "x"}', "[]", "null"])
def test_a_damaged_file_is_asked_for_again(host: Registry, tmp_path: Path, damage: str) -> None:
    host.add(7, FIRST)
    schemas = RegistrySchemas(layout.Registry((host.url,)), str(tmp_path))
    assert schemas.get(7)
    (path,) = Path(schemas.folder).iterdir()
    path.write_text(damage)
    assert schemas.get(7) == Written(json.dumps(FIRST))
    assert len(host.calls) == 2 and json.loads(path.read_text())["schema"] == json.dumps(FIRST)


def test_without_a_folder_to_write_schemas_come_all_the_same(host: Registry, tmp_path: Path) -> None:
    host.add(7, FIRST)
    (tmp_path / "file").write_text("")
    assert RegistrySchemas(layout.Registry((host.url,)), str(tmp_path / "file")).get(7)
    assert RegistrySchemas(layout.Registry((host.url,)), "").folder


def test_schemas_that_a_schema_uses_come_with_it_each_after_those_that_it_uses(host: Registry, tmp_path: Path) -> None:
    def uses(*places: tuple[str, int]) -> dict:
        return {"references": [{"name": "n", "subject": subject, "version": version} for subject, version in places]}

    host.add_version("shop/money", 3, "money")
    host.add_version("shop.row", 1, "row", **uses(("shop/money", 3)))
    host.add_version("shop.key", 2, "key", **uses(("shop/money", 3)))
    host.add(9, FIRST, schemaType="AVRO", **uses(("shop.row", 1), ("shop.key", 2)))
    schemas = RegistrySchemas(layout.Registry((host.url,)), str(tmp_path))
    found = schemas.get(9)
    assert found == Written(json.dumps(FIRST), ('"money"', '"row"', '"key"'))
    assert schemas.get(9) == found
    assert host.calls == [
        "/schemas/ids/9",
        "/subjects/shop.row/versions/1?deleted=true",
        "/subjects/shop%2Fmoney/versions/3?deleted=true",
        "/subjects/shop.key/versions/2?deleted=true",
    ]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((404, {"error_code": 404, "message": "HTTP 404 Not Found"}), "it answers 404; is the address"),
        ((404, "<html>nothing here</html>"), "does not give schema 7: it answers 404; is the address"),
        ((404, {"message": "no such route"}), "answers 404"),
        ((401, {"error_code": 401}), r"refuses access \(401\); are user and password right"),
        ((403, "no"), r"refuses access \(403\)"),
        ((200, "<html>welcome</html>"), "its answer is not JSON"),
        ((400, {}), "it answers 400"),
        ((200, {"schema": "{}", "references": 5}), "does not say which schemas"),
        ((200, {"schema": "{}", "references": [{"name": "n"}]}), "without its subject and version"),
        ((200, {"schema": "{}", "references": [{"subject": "s", "version": 1}]}), 'version 1 of "s"'),
        ((500, {"error_code": 50001}), "it answers 500"),
        ((429, {}), "it answers 429"),
    ],
)
def test_only_the_word_of_the_registry_says_that_there_is_no_schema(
    host: Registry, tmp_path: Path, answer: tuple[int, object], says: str
) -> None:
    host.answers["/schemas/ids/7"] = answer
    schemas = RegistrySchemas(layout.Registry((host.url,)), str(tmp_path))
    with pytest.raises(RegistryFailed, match=says):
        schemas.get(7)
    # What may be better soon is tried again, all else is not.
    assert host.calls.count("/schemas/ids/7") == (registry.ATTEMPTS if answer[0] in (500, 429) else 1)
    assert not Path(schemas.folder).exists()


def test_a_registry_that_fails_is_asked_again_and_then_the_others(tmp_path: Path) -> None:
    with registry_server() as first, registry_server() as second:
        first.add(7, FIRST)
        second.add(8, FIRST)
        second.answers["/schemas/ids/7"] = 500, {}
        first.failures = 2
        assert RegistrySchemas(layout.Registry((first.url,)), str(tmp_path)).get(7) and len(first.calls) == 3
        first.failures = 1000
        both = RegistrySchemas(layout.Registry((first.url, second.url)), str(tmp_path))
        assert both.get(8) and (len(first.calls), second.calls) == (4, ["/schemas/ids/8"])
    with pytest.raises(RegistryFailed, match=r"Connection refused.*; .*Connection refused"):
        both.get(9)


def test_the_login_goes_to_the_registry_and_nowhere_else(tmp_path: Path) -> None:
    with registry_server("loader:tr0ut:gill") as host, registry_server() as other:
        host.add(7, FIRST)
        given = layout.Registry((host.url,), login="loader:tr0ut:gill")
        assert "tr0ut" not in repr(given)
        with pytest.raises(RegistryFailed, match="refuses access") as failed:
            RegistrySchemas(replace(given, login="loader:wrong-password"), str(tmp_path)).get(7)
        assert "wrong-password" not in str(failed.value)
        assert RegistrySchemas(given, str(tmp_path)).get(7)
        other.add(8, FIRST)
        host.answers["/schemas/ids/8"] = 302, ""
        host.headers["Location"] = f"{other.url}/schemas/ids/8"
        assert RegistrySchemas(given, str(tmp_path)).get(8)
        assert other.logins == [None] and None not in host.logins


def test_a_registry_that_answers_with_the_schema_itself(host: Registry, tmp_path: Path) -> None:
    """As Apicurio's own API does, which also says the language in a header."""
    host.answers["/apis/registry/v2/ids/globalIds/7"] = 200, FIRST
    host.answers["/apis/registry/v2/ids/globalIds/8"] = (
        404,
        {"message": "No artifact with ID", "error_code": 404, "name": "ArtifactNotFoundException"},
    )
    host.answers["/apis/registry/v2/ids/globalIds/9"] = 200, 'syntax = "proto3";'
    at = layout.Registry((host.url + "/apis/registry/v2/",), "ids/globalIds/{number}?dereference=true")
    schemas = RegistrySchemas(at, str(tmp_path))
    assert schemas.get(7) == Written(json.dumps(FIRST)) and schemas.get(8) is None
    assert host.calls[0] == "/apis/registry/v2/ids/globalIds/7?dereference=true"
    host.headers["X-Registry-ArtifactType"] = "PROTOBUF"
    assert schemas.get(9) == Written("", (), "PROTOBUF")


def pem(folder: Path, name: str, *words: str) -> Path:
    """A certificate for this machine with its key, signed by itself."""
    path = folder / f"{name}.pem"
    subject = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", *words]
    files = ["-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.crt")]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", *files, "-nodes", *subject], check=True, capture_output=True
    )
    path.write_text((folder / f"{name}.crt").read_text() + (folder / f"{name}.key").read_text())
    return path


def test_certificates_of_both_sides(tmp_path: Path) -> None:
    own, caller = pem(tmp_path, "registry"), pem(tmp_path, "caller")
    authorities = (tmp_path / "registry.crt").read_text()
    with registry_server(certificate=own, callers=tmp_path / "caller.crt") as host:
        host.add(7, FIRST)
        at = layout.Registry((host.url,))
        for given in (at, replace(at, certificate=caller.read_text())):
            with pytest.raises(RegistryFailed, match="certificate verify failed"):
                RegistrySchemas(given, str(tmp_path)).get(7)
        with pytest.raises(RegistryFailed):
            RegistrySchemas(replace(at, authorities=authorities), str(tmp_path)).get(7)
        both = replace(at, authorities=authorities, certificate=caller.read_text())
        assert "BEGIN" not in repr(both)
        assert RegistrySchemas(both, str(tmp_path)).get(7) == Written(json.dumps(FIRST))


# --- messages


SLOTS = (Slot(("kind",), "text"), Slot(("id",), "text"), Slot(("now",), "row"), Slot(("source", "lag"), "text"))
REQUIRED = ((("kind",), "text"), (("id",), "text"), (("now",), "row"))
LAYOUT = Layout((), SLOTS, {}, needed=(("kind",),))
ROW = map_of(["null", "long", "string"])
OLD = record_type("change", kind="string", id="int", now=ROW)
NEW = record_type(
    "change",
    extra=["null", "string"],
    id="long",
    source=record_type("source", lag="double", host="string"),
    kind="string",
    now=map_of(["null", "double", "long", "string"]),
)
WITHOUT_ID = record_type("change", kind="string", now=ROW)
FLAT = record_type("change", kind="string", id="int", now="string")


def decoder(
    of: layout.Registry | None, known: dict[int, dict], folder: Path, size: int = 4
) -> Callable[[bytes], Found]:
    numbers = Numbers(size, {number: json.dumps(one) for number, one in known.items()}, of, REQUIRED)
    decode = registry.numbered_decoder(LAYOUT, numbers, str(folder))
    return lambda message: decode(message, None)


@pytest.mark.parametrize("size", [4, 8])
def test_each_message_is_read_by_its_own_schema(host: Registry, tmp_path: Path, size: int) -> None:
    """A field that was added is not read, one that has gone is null if it may lack, and a number that became longer or
    moved is read as it was written.
    """
    big = 2**31 + 5 if size == 4 else 2**40 + 5
    host.add(7, OLD)
    host.add(big, NEW)
    old = {"kind": "I", "id": -3, "now": {"a": 2**40, "b": None}}
    new = {"extra": "x", "id": 2**40, "source": {"lag": 0.5, "host": "h"}, "kind": "U", "now": {"a": 1.5, "c": "z"}}
    read = decoder(layout.Registry((host.url,)), {}, tmp_path, size)
    for _ in range(3):
        assert read(framed(7, OLD, old, size)).values[:2] == ["I", "-3"]
        found = read(framed(big, NEW, new, size))
        assert found.reason is None and found.values[:2] == ["U", str(2**40)] and found.values[3] == "0.5"
        assert found.values[2].texts == {"a": "1.5", "c": "z"}
        first = read(framed(7, OLD, old, size))
        assert first.values[2].texts == {"a": str(2**40), "b": None} and first.values[3] is None
    assert host.calls == ["/schemas/ids/7", f"/schemas/ids/{big}"]


def test_why_a_message_cannot_be_read(host: Registry, tmp_path: Path) -> None:
    host.add(1, OLD)
    host.add(2, WITHOUT_ID)
    host.add(3, FLAT)
    host.add(4, {"type": "object"}, schemaType="JSON")
    host.add(5, "x", schemaType="PROTOBUF")
    host.add(6, ["null", OLD])
    host.add(7, "string")
    host.add(8, record_type("change", kind="string", id="elsewhere.Id", now=ROW))
    good = framed(1, OLD, {"kind": "I", "id": 1, "now": {}})
    read = decoder(layout.Registry((host.url,)), {}, tmp_path)
    assert read(good).reason is None
    unused = {
        2: 'it has no field "id"',
        3: '"now" is not a map or a record',
        4: "its language is JSON, not AVRO",
        5: "its language is PROTOBUF, not AVRO",
        6: "it does not describe a record",
        7: "it does not describe a record",
        8: 'it uses a type "elsewhere.Id" that is not defined before',
    }
    expected = {
        b"\0\0\0\0%c.." % number: ("schema-mismatch", f"the schema with the number {number} cannot be used: {why}")
        for number, why in unused.items()
    } | {
        b"\0\0\0\1\0..": ("schema-unknown", "no schema has the number 256: the schema registry has none"),
        b"\0\0\0\0": ("bad-avro", "4 bytes, but 5 come before a record"),
        b"\1\0\0\0\1..": ("bad-avro", "its first byte is 1; before the number of a schema there is a zero"),
        good[:-1]: ("bad-avro", f"the message ends too early, at byte {len(good) - 1}, in now"),
        good + b"!": ("schema-mismatch", f"1 bytes after the record, from byte {len(good)} on"),
    }
    for message, why in expected.items():
        found = read(message)
        assert (found.reason, found.detail) == why
    before = len(host.calls)
    for message, why in expected.items():
        assert read(message)[1:] == why
    assert len(host.calls) == before == 9


def test_a_type_of_another_schema(host: Registry, tmp_path: Path) -> None:
    inner = {**record_type("Id", digits="string"), "namespace": "shop"}
    host.add_version("id", 4, inner)
    outer = record_type("change", kind="string", id="shop.Id", now=ROW)
    host.add(1, outer, references=[{"name": "shop.Id", "subject": "id", "version": 4}])
    whole = record_type("change", kind="string", id=inner, now=ROW)
    read = decoder(layout.Registry((host.url,)), {}, tmp_path)
    found = read(framed(1, whole, {"kind": "I", "id": {"digits": "12"}, "now": {}}))
    assert found.reason is None and found.values[1] == '{"digits":"12"}'


def test_rows_that_are_records(tmp_path: Path) -> None:
    """The columns of each row are those of its own schema: what that does not name is not in the image."""
    date = {"type": "int", "logicalType": "date"}
    first = record_type("row", id="int", name=["null", "string"], born=date)
    later = record_type("row", id="long", price={"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})
    schemas = {
        n: record_type("change", kind="string", id="int", now=["null", row]) for n, row in enumerate((first, later))
    }
    read = decoder(None, schemas, tmp_path)
    rows = [{"id": 1, "name": None, "born": 19000}, {"id": 2**40, "price": Decimal("1.50")}, None]
    found = [
        read(framed(n, schemas[n], {"kind": "I", "id": 1, "now": row})).values[2] for n, row in zip((0, 1, 1), rows)
    ]
    assert found[0].texts == {"id": "1", "name": None, "born": "2022-01-08"}
    assert found[1].texts == {"id": str(2**40), "price": "1.50"} and found[2] is None


def test_a_number_that_was_unknown_is_looked_up_again_later(
    host: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = decoder(layout.Registry((host.url,)), {}, tmp_path)
    message = framed(1, OLD, {"kind": "I", "id": 1, "now": {}})
    assert [read(message).reason for _ in range(5)] == ["schema-unknown"] * 5 and len(host.calls) == 1
    host.add(1, OLD)
    assert read(message).reason == "schema-unknown"
    monkeypatch.setattr(registry, "UNKNOWN_SECONDS", -1)
    assert read(message).reason is None and len(host.calls) == 2
    schemas = registry.NumberedSchemas(
        LAYOUT, Numbers(4, {}, layout.Registry((host.url,)), REQUIRED), str(tmp_path / "other")
    )
    schemas.decoder(2)
    host.add(2, OLD)
    assert schemas.decoder(2) is schemas.decoder(2)


def test_memory_does_not_grow_with_numbers(host: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MOST_SCHEMAS", 3)
    schemas = registry.NumberedSchemas(
        LAYOUT, Numbers(4, {0: json.dumps(OLD)}, layout.Registry((host.url,)), REQUIRED), str(tmp_path)
    )
    for number in range(20):
        schemas.decoder(number)
        assert len(schemas.decoders) <= 3 and set(schemas.unknown) <= set(schemas.decoders)


def test_schemas_of_a_folder_come_first(host: Registry, tmp_path: Path) -> None:
    message = framed(1, OLD, {"kind": "I", "id": 1, "now": {}})
    assert decoder(layout.Registry((host.url,)), {1: OLD}, tmp_path)(message).reason is None and not host.calls
    alone = decoder(None, {1: OLD}, tmp_path)
    assert alone(message).reason is None
    assert alone(framed(2, OLD, {"kind": "I", "id": 1, "now": {}}))[1:] == (
        "schema-unknown",
        'no schema has the number 2: there is no file "2.avsc"',
    )
