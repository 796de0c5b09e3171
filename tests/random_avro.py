"""Random Avro schemas, values for them, and bytes that are almost such values. What is encoded is fastavro's work."""

from __future__ import annotations

import io
import json
import random
import struct
from typing import Any

import fastavro

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL = {
    "int": ("date", "time-millis"),
    "long": ("time-micros", "timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros"),
    "string": ("uuid",),
    "bytes": ("decimal",),
}
LETTERS = "abcdefghij 'é中😀\0"


class RandomSchema:
    """`text` is the schema as it is published; `parsed` is fastavro's, without its logical types, so that values are
    what is written.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self._count = 0
        self._defined: list[str] = []
        self._open: set[str] = set()
        written = self._record("", 0)
        self.text = json.dumps(written)
        self.names: dict[str, Any] = {}
        self.parsed = fastavro.parse_schema(without_logical_types(written), self.names)

    def value(self) -> Any:
        return self._value(self.parsed, 0)

    # --- schemas

    def _record(self, space: str, depth: int) -> dict[str, Any]:
        written, full = self._names("record", space)
        self._open.add(full)
        self._defined.append(full)
        inner = full.rpartition(".")[0]
        names = self.draw.sample("abcdefgh", self.draw.randrange(0 if depth else 1, 6))
        written["fields"] = [{"name": name, "type": self._schema(inner, depth + 1, False)} for name in names]
        self._open.remove(full)
        return written

    def _names(self, kind: str, space: str) -> tuple[dict[str, Any], str]:
        """A type with a name that stands in its own namespace, a given one, or that of what is around it."""
        self._count += 1
        short, other = f"N{self._count}", self.draw.choice(["x", "x.y", "z"])
        match self.draw.randrange(4):
            case 0:
                return {"type": kind, "name": f"{other}.{short}", "namespace": "not.this.one"}, f"{other}.{short}"
            case 1:
                return {"type": kind, "name": short, "namespace": other}, f"{other}.{short}"
        return {"type": kind, "name": short}, f"{space}.{short}" if space else short

    def _schema(self, space: str, depth: int, may_recur: bool) -> Any:
        """`may_recur`: a value need not hold one of this, so that it may be a record that is not yet complete."""
        references = [
            name for name in self._defined if (may_recur or name not in self._open) and ("." in name or not space)
        ]
        kinds = [
            "primitive",
            "primitive",
            "enum",
            "fixed",
            *["reference"] * (2 if references else 0),
            *(["array", "map", "union", "union", "record"] if depth < 4 else []),
        ]
        match self.draw.choice(kinds):
            case "primitive":
                return self._primitive()
            case "reference":
                return self._reference(self.draw.choice(references), space)
            case "enum":
                return self._enum(space)
            case "fixed":
                return self._fixed(space)
            case "array":
                return {"type": "array", "items": self._schema(space, depth + 1, True)}
            case "map":
                return {"type": "map", "values": self._schema(space, depth + 1, True)}
            case "union":
                return self._union(space, depth)
        return self._record(space, depth)

    def _primitive(self) -> Any:
        name = self.draw.choice(PRIMITIVES)
        if name in LOGICAL and self.draw.random() < 0.3:
            return {"type": name, "logicalType": self.draw.choice(LOGICAL[name]), "precision": 30, "scale": 2}
        return self.draw.choice([name, {"type": name}])

    def _reference(self, full: str, space: str) -> str:
        namespace, _, short = full.rpartition(".")
        return short if namespace == space and self.draw.random() < 0.5 else full

    def _enum(self, space: str) -> dict[str, Any]:
        written, full = self._names("enum", space)
        self._defined.append(full)
        return {**written, "symbols": [f"S{number}" for number in range(self.draw.choice([1, 2, 7, 63, 64, 65, 100]))]}

    def _fixed(self, space: str) -> dict[str, Any]:
        written, full = self._names("fixed", space)
        self._defined.append(full)
        return {
            **written,
            "size": self.draw.choice([0, 1, 4, 16, 300]),
            **({"logicalType": "decimal", "precision": 2, "scale": 1} if self.draw.random() < 0.2 else {}),
        }

    def _union(self, space: str, depth: int) -> list[Any]:
        has_null = self.draw.random() < 0.8
        branches: dict[str, Any] = {"null": "null"} if has_null else {}
        for _ in range(self.draw.randrange(1, 5)):
            known = list(self._defined)
            branch = self._schema(space, depth + 1, has_null)
            if isinstance(branch, list) or branch_name(branch) in branches:
                self._defined = known  # what was defined within a branch that is left out
            else:
                branches[branch_name(branch)] = branch
        others = [branch for name, branch in branches.items() if name != "null"]
        if has_null or not others:
            others.insert(
                self.draw.randrange(len(others) + 1), "null"
            )  # the others keep their order: types are used behind where they are defined
        return others

    # --- values

    def _value(self, schema: Any, depth: int) -> Any:
        match schema:
            case str() if schema in self.names:
                return self._value(self.names[schema], depth)
            case list():
                return self._branch(schema, depth)
            case {"type": "record", "fields": fields}:
                return {field["name"]: self._value(field["type"], depth + 1) for field in fields}
            case {"type": "array", "items": items}:
                return [self._value(items, depth + 1) for _ in range(self._size(depth))]
            case {"type": "map", "values": values}:
                return {self._text(): self._value(values, depth + 1) for _ in range(self._size(depth))}
            case {"type": "enum", "symbols": symbols}:
                return self.draw.choice(symbols)
            case {"type": "fixed", "size": size}:
                return self.draw.randbytes(size)
        return self._scalar(schema if isinstance(schema, str) else schema["type"])

    def _size(self, depth: int) -> int:
        return self.draw.choice([0, 1, 1, 2, 70 if depth < 2 else 3]) if depth < 6 else 0

    def _branch(self, branches: list[Any], depth: int) -> tuple[str, Any]:
        branch = "null" if depth > 6 and "null" in branches else self.draw.choice(branches)
        name = branch if isinstance(branch, str) else branch.get("name", branch["type"])
        return name, self._value(branch, depth + 1)

    def _text(self) -> str:
        return "".join(self.draw.choices(LETTERS, k=self.draw.choice([0, 1, 5, 20, 70])))

    def _scalar(self, name: str) -> Any:
        match name:
            case "null":
                return None
            case "boolean":
                return self.draw.random() < 0.5
            case "int" | "long":
                bits = self.draw.choice([0, 6, 7, 13, 14, 30, 31, *([32, 48, 62, 63] if name == "long" else [])])
                return self.draw.choice([self.draw.getrandbits(bits), 2**bits - 1, -(2**bits)])
            case "float":
                return struct.unpack("<f", self.draw.randbytes(4))[0]
            case "double":
                return struct.unpack(
                    "<d",
                    self.draw.choice(
                        [self.draw.randbytes(8), b"\0" * 6 + b"\xf8\x7f", b"\0" * 6 + b"\xf0\xff", b"\0" * 7 + b"\x80"]
                    ),
                )[0]
            case "bytes":
                return self.draw.randbytes(self.draw.choice([0, 1, 5, 200]))
        return self._text()


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


def long_bytes(number: int) -> bytes:
    """A whole number as the specification has it: zigzag, seven bits a byte, the lowest first."""
    rest, out = number << 1 if number >= 0 else (-number << 1) - 1, bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*out, rest])


def text_bytes(text: str) -> bytes:
    return long_bytes(len(text.encode())) + text.encode()


def mutated(draw: random.Random, data: bytes) -> bytes:
    """The same bytes with a few of them flipped, cut off, cut out or put in."""
    out = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        position = draw.randrange(len(out) + 1)
        match draw.randrange(5):
            case 0:
                del out[position:]
            case 1:
                del out[position : position + draw.randrange(1, 4)]
            case 2:
                out[position:position] = draw.choice(
                    [draw.randbytes(3), b"\xff" * 9, b"\x80" * 10, long_bytes(2**62), long_bytes(-1)]
                )
            case _ if position < len(out):
                out[position] ^= 1 << draw.randrange(8)
    return bytes(out)
