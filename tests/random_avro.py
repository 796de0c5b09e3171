"""Random Avro schemas, values of them, and bytes that are almost such values, as strategies of Hypothesis. What is
encoded is fastavro's work.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import fastavro
from hypothesis import strategies as st

from tests.avro_cases import encoded

# The shortest encodings first: examples of failures shrink to them.
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "bytes": st.binary(max_size=9) | st.just(b"\xff" * 200),
    "string": st.text(max_size=9) | st.just("é中😀\0" * 20),
}
PRIMITIVES = tuple(SCALARS)
LOGICAL = {
    "int": ("date", "time-millis"),
    "long": ("time-micros", "timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros"),
    "string": ("uuid",),
    "bytes": ("decimal",),
}
FEW_BYTES = st.binary(max_size=4)
# A few kinds of values, and how many symbols: numbers of one byte end with 63.
LEAVES = ("primitive", "primitive", "enum", "fixed")
SYMBOLS = [f"S{number}" for number in range(100)]
DEEPEST_SCHEMA, DEEPEST_VALUE = 4, 6

Draw = Callable[[st.SearchStrategy[Any]], Any]
# Strategies are checked when they are first used: each is made once.
up_to = cache(lambda most: st.integers(0, most))


class Made(NamedTuple):
    """`text` is the schema as it is published; `parsed` is fastavro's, without its logical types, so that values are
    what is written. `names` are all types with a name.
    """

    text: str
    parsed: Any
    names: dict[str, Any]


def one_of(draw: Draw, choices: Sequence[Any]) -> Any:
    return choices[draw(up_to(len(choices) - 1))]


@st.composite
def schemas(draw: Draw) -> Made:
    written = _Types(draw).record("", 0)
    names: dict[str, Any] = {}
    return Made(json.dumps(written), fastavro.parse_schema(without_logical_types(written), names), names)


@st.composite
def values(draw: Draw, made: Made) -> Any:
    return _value(draw, made.parsed, made.names, 0)


@st.composite
def messages(draw: Draw, most: int = 4) -> tuple[Made, list[bytes]]:
    """A schema and some messages of it."""
    made = draw(schemas())
    return made, [encoded(made.parsed, draw(values(made))) for _ in range(1 + draw(up_to(most - 1)))]


class _Types:
    """Draws types, and knows those that have a name: `defined`, and of them `open` while their fields are drawn."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.defined: list[str] = []
        self.open: set[str] = set()
        self.count = 0

    def any_of(self, *choices: Any) -> Any:
        return one_of(self.draw, choices)

    def record(self, space: str, depth: int) -> dict[str, Any]:
        written, full = self.named("record", space)
        self.open.add(full)
        names = "abcde"[: (0 if depth else 1) + self.draw(up_to(4))]
        inner = full.rpartition(".")[0]
        written["fields"] = [{"name": name, "type": self.type(inner, depth + 1, False)} for name in names]
        self.open.remove(full)
        return written

    def named(self, kind: str, space: str) -> tuple[dict[str, Any], str]:
        """A type with a name that stands in the namespace of what is around it, in a given one, or in its own."""
        self.count += 1
        short, other = f"N{self.count}", self.any_of("x", "x.y", "z")
        place = self.any_of("around", "around", "given", "own")
        written = {"type": kind, "name": f"{other}.{short}" if place == "own" else short}
        if place != "around":
            written["namespace"] = other if place == "given" else "not.this.one"
            space = other
        self.defined.append(f"{space}.{short}" if space else short)
        return written, self.defined[-1]

    def type(self, space: str, depth: int, may_recur: bool) -> Any:
        """`may_recur`: a value need not hold one of this, so that it may be a record that is not yet complete."""
        known = [name for name in self.defined if (may_recur or name not in self.open) and ("." in name or not space)]
        nested = ("array", "map", "union", "union", "record") if depth < DEEPEST_SCHEMA else ()
        match self.any_of(*LEAVES, *nested, *["reference"] * (2 if known else 0)):
            case "primitive":
                return self.primitive()
            case "reference":
                namespace, _, short = (full := self.any_of(*known)).rpartition(".")
                return short if namespace == space and self.draw(up_to(1)) else full
            case "enum":
                return {**self.named("enum", space)[0], "symbols": SYMBOLS[: self.any_of(1, 2, 7, 63, 64, 65, 100)]}
            case "fixed":
                logical = self.any_of({}, {}, {}, {"logicalType": "decimal", "precision": 2, "scale": 1})
                return {**self.named("fixed", space)[0], "size": self.any_of(0, 1, 4, 16, 300), **logical}
            case "array":
                return {"type": "array", "items": self.type(space, depth + 1, True)}
            case "map":
                return {"type": "map", "values": self.type(space, depth + 1, True)}
            case "union":
                return self.union(space, depth)
        return self.record(space, depth)

    def primitive(self) -> Any:
        name = self.any_of(*PRIMITIVES)
        logical = {"type": name, "logicalType": self.any_of(*LOGICAL.get(name, ("of our own",))), "scale": 2}
        return self.any_of(name, {"type": name}, {**logical, "precision": 30})

    def union(self, space: str, depth: int) -> list[Any]:
        has_null = self.any_of(True, True, False)
        branches: dict[str, Any] = {"null": "null"} if has_null else {}
        for _ in range(1 + self.draw(up_to(3))):
            known = list(self.defined)
            branch = self.type(space, depth + 1, has_null)
            if isinstance(branch, list) or branch_name(branch) in branches:
                self.defined = known  # what was defined within a branch that is left out
            else:
                branches[branch_name(branch)] = branch
        # The others keep their order: types are used behind where they are defined.
        others = [branch for name, branch in branches.items() if name != "null"]
        if has_null or not others:
            others.insert(self.draw(up_to(len(others))), "null")
        return others


def _value(draw: Draw, schema: Any, names: dict[str, Any], depth: int) -> Any:
    def within(inner: Any) -> Any:
        return _value(draw, inner, names, depth + 1)

    match schema:
        case str() if schema in names:
            return _value(draw, names[schema], names, depth)
        case list():
            branch = "null" if depth > DEEPEST_VALUE and "null" in schema else one_of(draw, schema)
            name = branch if isinstance(branch, str) else branch.get("name", branch["type"])
            return name, within(branch)
        case {"type": "record", "fields": fields}:
            return {field["name"]: within(field["type"]) for field in fields}
        case {"type": "array", "items": items}:
            some = [within(items) for _ in range(_size(draw, depth))]
            return some * (35 if some and depth < 2 and draw(up_to(3)) == 3 else 1)
        case {"type": "map", "values": inner}:
            return {draw(SCALARS["string"]): within(inner) for _ in range(_size(draw, depth))}
        case {"type": "enum", "symbols": symbols}:
            return one_of(draw, symbols)
        case {"type": "fixed", "size": size}:
            return draw(FEW_BYTES)[:size].ljust(size, b"\xfe")
    return draw(SCALARS[schema if isinstance(schema, str) else schema["type"]])


def _size(draw: Draw, depth: int) -> int:
    return draw(up_to(2)) if depth < DEEPEST_VALUE else 0


def branch_name(schema: Any) -> str:
    """What makes two branches of a union alike."""
    match schema:
        case {"name": str(name)}:
            return name.rpartition(".")[2]
        case {"type": str(kind)}:
            return kind
    return str(schema).rpartition(".")[2]


def without_logical_types(written: Any) -> Any:
    match written:
        case dict():
            return {key: without_logical_types(value) for key, value in written.items() if key != "logicalType"}
        case list():
            return [without_logical_types(value) for value in written]
    return written


def decoded(schema: Any, data: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(data), schema, None)


# --- bytes
# ----------------------------------------------------------------------------------------------------------------------


def long_bytes(number: int) -> bytes:
    return encoded("long", number)


def text_bytes(text: str) -> bytes:
    return encoded("string", text)


PUT_IN = st.binary(min_size=1, max_size=8) | st.sampled_from([b"\xff" * 9, b"\x80" * 10, long_bytes(2**62), b"\x01"])


@st.composite
def damaged(draw: Draw, data: bytes) -> bytes:
    """The same bytes with a few of them flipped, cut off, cut out, put in or doubled."""
    for _ in range(1 + draw(up_to(3))):
        at = draw(up_to(len(data)))
        before, behind = data[:at], data[at:]
        match one_of(draw, ("flip", "flip", "put in", "cut out", "cut off", "double")):
            case "flip":
                data = before + bytes(byte ^ 1 << draw(up_to(7)) for byte in behind[:1]) + behind[1:]
            case "put in":
                data = before + draw(PUT_IN) + behind
            case "cut out":
                data = before + behind[1 + draw(up_to(7)) :]
            case "cut off":
                data = before
            case "double":
                data = before + data
    return data
