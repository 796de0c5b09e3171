"""What is a schema and what is none, beside fastavro where both have an opinion. Without Spark."""

from __future__ import annotations

import json
from typing import Any

import fastavro
import pytest

from runner.functions.avro.schema import (
    Array,
    Enum,
    Fixed,
    Map,
    OneOf,
    Primitive,
    Record,
    Schema,
    SchemaError,
    children,
    inside,
    parse_schema,
)
from tests.avro_types import array_of, map_of, record_type
from tests.pages import table
from tests.random_avro import PRIMITIVES

TABLES = table("avro_schemas")
LONG, STRING, NULL = Primitive("long"), Primitive("string"), Primitive("null")
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 4}


def record(*types: Any, name: str = "r", **others: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{number}", "type": one} for number, one in enumerate(types)],
        **others,
    }


def parsed(written: Any) -> Record:
    return parse_schema(json.dumps(written))


def fastavro_takes(written: Any) -> bool:
    try:
        fastavro.parse_schema(written)
    except Exception:
        return False
    return True


# --- what is a schema


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *((name, Primitive(name)) for name in PRIMITIVES),
        *(({"type": name}, Primitive(name)) for name in PRIMITIVES),
        ({"type": {"type": "long"}}, LONG),
        ({"type": {"type": {"type": "long"}}}, LONG),
        ({"type": array_of("long")}, Array(LONG)),
        ({"type": ["null", "long"]}, OneOf((NULL, LONG))),
        ({"type": ENUM}, Enum("E", ("A", "B"))),
        (array_of(map_of(["null", {"type": "long"}])), Array(Map(OneOf((NULL, LONG))))),
        (ENUM, Enum("E", ("A", "B"))),
        ({**ENUM, "name": "x.y.E"}, Enum("E", ("A", "B"))),
        ({**ENUM, "symbols": [f"S{n}" for n in range(100)]}, Enum("E", tuple(f"S{n}" for n in range(100)))),
        (FIXED, Fixed("F", 4)),
        ({**FIXED, "size": 0}, Fixed("F", 0)),
        ([], OneOf(())),
        (["string"], OneOf((STRING,))),
        # what says nothing of how a record is written
        ({"type": "long", "doc": "x", "connect.name": "y"}, LONG),
        ({**ENUM, "default": "A", "aliases": ["G"], "doc": "x"}, Enum("E", ("A", "B"))),
        # logical types
        ({"type": "long", "logicalType": "timestamp-millis"}, Primitive("long", "timestamp-millis")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Primitive("bytes", "decimal", 2)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9}, Primitive("bytes", "decimal", 0)),
        ({**FIXED, "logicalType": "decimal", "precision": 9, "scale": 3}, Fixed("F", 4, "decimal", 3)),
        ({"type": {"type": "int", "logicalType": "date"}}, Primitive("int", "date")),
        ({"type": "int", "logicalType": "of our own"}, Primitive("int", "of our own")),
        ({"type": "string", "logicalType": 5}, STRING),
    ],
)  # fmt: skip
def test_types(written: Any, expected: Schema) -> None:
    assert parsed(record(written)).fields == {"f0": expected}


def test_records_in_their_order() -> None:
    found = parsed(record("long", record("string", name="inner"), "null"))
    assert (found.name, list(found.fields)) == ("r", ["f0", "f1", "f2"])
    assert isinstance(found.fields["f1"], Record) and found.fields["f1"].fields == {"f0": STRING}
    assert parsed(record()).fields == {}
    assert parsed({**record("long"), "type": "error"}).fields == {"f0": LONG}
    assert parsed({"type": record("long")}).name == "r"


@pytest.mark.parametrize(
    "types",
    [
        # one name, written shortly or in full, within and without namespaces
        [ENUM, "E"],
        [{**ENUM, "namespace": "x"}, "x.E"],
        [{**ENUM, "name": "x.E"}, "x.E"],
        [{**ENUM, "name": "x.E", "namespace": "not.this.one"}, "x.E"],
        [record({**ENUM}, "E", "x.E", name="inner", namespace="x"), "x.E"],
        [record({**ENUM}, "E", "x.E", name="x.inner", namespace="not.this.one"), "x.E"],
        [record(record({**ENUM}, name="deep"), "E", "deep", name="inner", namespace="x"), "x.deep"],
        [record({**ENUM, "namespace": "y"}, "y.E", name="inner", namespace="x"), "y.E"],
        [record({**ENUM, "namespace": ""}, name="inner", namespace="x"), "E"],
        [{**ENUM, "namespace": "x"}, {**ENUM, "namespace": "y"}, "x.E", "y.E"],
    ],
)
def test_references(types: list[Any]) -> None:
    written = record(*types)
    assert fastavro_takes(written)
    named = [one for one in inside(parsed(written)) if isinstance(one, Enum)]
    assert len({id(one) for one in named}) == (2 if len(types) == 4 else 1)


def test_a_name_stands_for_the_nearest() -> None:
    other = {"type": "enum", "name": "E", "symbols": ["X"]}
    found = parsed(record(ENUM, record({**other, "namespace": "x"}, "E", name="inner", namespace="x"), "E"))
    inner = found.fields["f1"]
    assert isinstance(inner, Record)
    assert (inner.fields["f1"], found.fields["f2"]) == (Enum("E", ("X",)), Enum("E", ("A", "B")))


def test_records_that_hold_themselves() -> None:
    found = parsed(
        record("long", ["null", "r"], array_of("x.y"), map_of("r"), namespace="x")
        | {"name": "y", "fields": [{"name": "next", "type": ["null", "y"]}, {"name": "all", "type": array_of("x.y")}]}
    )
    assert children(found.fields["next"])[1] is found
    assert children(found.fields["all"])[0] is found
    assert {id(one) for one in inside(found)} == {
        id(one) for one in (found, *found.fields.values(), *children(found.fields["next"]))
    }


# --- published lists of types


def test_a_list_of_types_is_the_record_that_no_other_uses() -> None:
    inner = record("long", name="inner", namespace="x")
    assert parsed([inner, record("x.inner", name="outer")]).name == "outer"
    assert (
        parsed([ENUM, FIXED, inner, record("E", ["null", array_of("x.inner")], map_of("F"), name="outer")]).name
        == "outer"
    )
    assert parsed([inner]).name == "inner"
    assert parsed([ENUM, record("long"), "string"]).name == "r"


def test_a_list_whose_record_holds_itself() -> None:
    assert parsed([record("long", ["null", "r"])]).name == "r"
    assert parsed([ENUM, record("E", ["null", array_of("r")])]).name == "r"
    assert (
        parsed([record(["null", "inner"], name="inner"), record("inner", ["null", "outer"], name="outer")]).name
        == "outer"
    )


@pytest.mark.parametrize(
    ("types", "named"),
    [
        ([], "none"),
        ([ENUM, "string"], "none"),
        ([record("long", name="a"), record("long", name="b")], "a, b"),
        ([record("long", name="a"), record("a", name="b"), record("a", name="c")], "b, c"),
    ],
)
def test_a_list_of_types_without_one_record(types: list[Any], named: str) -> None:
    with pytest.raises(SchemaError, match=f"exactly one record must not be used by the others; not used: {named}$"):
        parsed(types)


# --- what is none


def refused_schemas(key: str) -> list[tuple[Any, str]]:
    of_types = [(record(*types), words) for types, words in TABLES[f"{key}_of_types"]]
    return [*of_types, *map(tuple, TABLES[key])]


def refusal(text: str) -> str:
    with pytest.raises(SchemaError) as refused:
        parse_schema(text)
    return str(refused.value)


@pytest.mark.parametrize(("written", "words"), refused_schemas("no_schemas"))
def test_what_is_no_schema(written: Any, words: str) -> None:
    assert words in refusal(json.dumps(written))
    assert not fastavro_takes(written)


@pytest.mark.parametrize(("written", "words"), refused_schemas("no_schemas_here"))
def test_what_is_no_schema_though_fastavro_takes_it(written: Any, words: str) -> None:
    assert words in refusal(json.dumps(written))
    assert fastavro_takes(written)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is not JSON: "),
        ("record", "it is not JSON: "),
        ('{"type": "record"', "it is not JSON: "),
        ("[" * 100_000, "it is not JSON: "),
        ("9" * 5000, "it is not JSON: "),
        ('{"type": ' * 300 + '"long"' + "}" * 300, "it does not describe a record"),
        (json.dumps(record_type("r", **{"\ud800": "long"})), "it holds half a surrogate pair"),
        (json.dumps(record(ENUM | {"symbols": ["a\udfff"]})), "it holds half a surrogate pair"),
    ],
    ids=range(8),
)
def test_texts_that_are_no_schema(text: str, words: str) -> None:
    assert refusal(text).startswith(words)


PIECES: list[Any] = [
    None, True, 5, 1.5, "", "r", "long", [], ["long"], [[]], {}, {"type": []}, {"type": {}}, {"name": "r"},
    {"type": "record", "name": 5},
]  # fmt: skip


def test_whatever_is_written_is_a_schema_or_is_refused() -> None:
    """Any JSON in the place of any part of a schema."""
    written = record(
        {**ENUM, "namespace": "x"},
        FIXED,
        array_of("long"),
        {"type": "bytes", "logicalType": "decimal", "scale": 1},
        namespace="y",
    )
    for path in paths(written):
        for piece in PIECES:
            try:
                assert isinstance(parsed(replaced(written, path, piece)), Record)
            except SchemaError as refused:
                assert str(refused)


def paths(written: Any) -> list[tuple[Any, ...]]:
    steps = written.items() if isinstance(written, dict) else enumerate(written) if isinstance(written, list) else ()
    return [(), *((step, *rest) for step, inner in steps for rest in paths(inner))]


def replaced(written: Any, path: tuple[Any, ...], piece: Any) -> Any:
    if not path:
        return piece
    out = dict(written) if isinstance(written, dict) else list(written)
    out[path[0]] = replaced(written[path[0]], path[1:], piece)
    return out
