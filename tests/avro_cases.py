"""Cases of Avro formats: `CASE.messages.jsonl`, which people read -> `CASE.messages.base64`, which the runner reads.

`python -m tests.avro_cases` writes every `.messages.base64` anew. A line of the readable file is a record in Avro's
JSON encoding, fields with a default may be left out; or `{"schema": PATH, "record": RECORD}`, a record of another
schema, its path from the folder of formats, with `number` behind a zero byte and that number; or `{"base64": TEXT,
"about": TEXT}`, bytes as they are.
"""

from __future__ import annotations

import io
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import yaml

ROOT = Path(__file__).parent.parent
READABLE, ENCODED, ROWS = ".messages.jsonl", ".messages.base64", ".rows.yml"


def write_all() -> None:
    for readable in readable_files():
        encoded_file(readable).write_text(encoded_text(readable), "ascii")


def readable_files() -> list[Path]:
    """The readable files of all formats whose messages are Avro."""
    specs = sorted((ROOT / "formats").glob("*.yml"))
    formats = [spec.stem for spec in specs if _message(spec).get("encoding") == "avro"]
    return [path for name in formats for path in sorted((ROOT / "formats/cases" / name).glob(f"*{READABLE}"))]


def encoded_file(readable: Path) -> Path:
    return readable.with_name(readable.name.removesuffix(READABLE) + ENCODED)


def encoded_text(readable: Path) -> str:
    """The messages of a readable file in base64, one a line; an empty line stays one."""
    lines = readable.read_text("utf-8").removesuffix("\n").split("\n")
    return "".join(f"{_line(line, readable, number)}\n" for number, line in enumerate(lines, 1))


def _line(line: str, readable: Path, number: int) -> str:
    try:
        return b64encode(message_bytes(json.loads(line), readable)).decode() if line else ""
    except (ValueError, TypeError, KeyError, OverflowError) as e:
        raise ValueError(f"{readable}:{number}: {e}") from e


def message_bytes(written: dict[str, Any], readable: Path) -> bytes:
    formats = readable.parent.parent.parent
    match written:
        case {"base64": str(text), "about": _, **others} if not others:
            if not text:
                raise ValueError("a message of no bytes cannot be written in these files")
            return b64decode(text, validate=True)
        case {"schema": str(path), "record": record, **others} if not others:
            return encode(formats / path, record)
        case {"number": int(number), "schema": str(path), "record": record, **others} if not others:
            return b"\0" + number.to_bytes(4, "big") + encode(formats / path, record)
    return encode(schema_of(readable), written)


def schema_of(readable: Path) -> Path:
    """The first schema of the format, or the one that the case's source has."""
    folder = readable.parent
    spec = folder.parent.parent / f"{folder.name}.yml"
    match _message(spec).get("schema"):
        case str(path) | [str(path), *_]:
            return spec.parent / path
    rows = readable.with_name(readable.name.removesuffix(READABLE) + ROWS)
    path: str = _yaml(rows)["source"]["schema"]
    return folder / path


def _message(spec: Path) -> dict[str, Any]:
    message: dict[str, Any] = _yaml(spec).get("message") or {}
    return message


@cache
def _yaml(path: Path) -> dict[str, Any]:
    return yaml.load(path.read_text("utf-8"), yaml.CBaseLoader) or {}


# --- Avro
# ----------------------------------------------------------------------------------------------------------------------


def encode(schema: Path, record: Any) -> bytes:
    parsed, root, names = _schema(schema)
    # Without the index of the branch, which is one byte: no file lists 64 types.
    return encoded(parsed, (root, datum(record, root, names)))[1:]


def encoded(schema: Any, value: Any) -> bytes:
    """The bytes of one value, as fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


@cache
def _schema(path: Path) -> tuple[list[Any], str, dict[str, Any]]:
    """A file's types as a union, the name of the record that messages are, and all named types. Records are written as
    a branch of that union, whose index is no part of a message: so a published list of types, whose record comes last,
    is read like a single record.
    """
    names: dict[str, Any] = {}
    written = json.loads(path.read_text("utf-8"))
    parsed = fastavro.parse_schema(written if isinstance(written, list) else [written], names)
    (root,) = [
        one["name"]
        for one in parsed
        if not any(one["name"] in _used(other, names) for other in parsed if other is not one)
    ]
    return parsed, root, names


def _used(schema: Any, names: dict[str, Any]) -> Iterator[str]:
    match schema:
        case str() if schema in names:
            yield schema
        case list():
            for branch in schema:
                yield from _used(branch, names)
        case {"type": "array", "items": inner} | {"type": "map", "values": inner}:
            yield from _used(inner, names)
        case {"type": "record", "fields": fields}:
            for field in fields:
                yield from _used(field["type"], names)


def datum(value: Any, schema: Any, names: dict[str, Any]) -> Any:
    """A value of Avro's JSON encoding -> what fastavro writes, values of unions as (name of the branch, value): left to
    itself it would choose the branch that fits best, not the one that was named. NaN and the infinities may stand in
    quotes. What does not fit its type, fastavro refuses.

    >>> datum({"long": 1}, ["null", "int", "long"], {})
    ('long', 1)
    """
    match schema:
        case [*branches]:
            return _branch(value, branches, names)
        case {"type": "array", "items": items}:
            return [datum(one, items, names) for one in value]
        case {"type": "map", "values": values}:
            return {name: datum(one, values, names) for name, one in value.items()}
        case {"type": "record", "name": name, "fields": fields}:
            if unknown := value.keys() - {field["name"] for field in fields}:
                raise ValueError(f"{name} has no field {', '.join(sorted(unknown))}")
            return {field["name"]: _field(value, field, names) for field in fields}
        case str() if schema in names:
            return datum(value, names[schema], names)
        case "bytes" | {"type": "bytes" | "fixed"}:
            return value.encode("latin-1")
        case ("float" | "double") | {"type": "float" | "double"}:
            return float(value)
    return value


def _branch(value: Any, branches: list[Any], names: dict[str, Any]) -> tuple[str, Any]:
    if value is None and "null" in branches:
        return "null", None
    if isinstance(value, dict) and len(value) == 1:
        ((name, inner),) = value.items()
        for branch in branches:
            if name == branch_name(branch):
                return name, datum(inner, branch, names)
    raise ValueError(f"{json.dumps(value)} names no branch of {', '.join(map(branch_name, branches))}")


def branch_name(branch: Any) -> str:
    return branch if isinstance(branch, str) else str(branch.get("name", branch["type"]))


def _field(record: dict[str, Any], field: dict[str, Any], names: dict[str, Any]) -> Any:
    if field["name"] in record:
        return datum(record[field["name"]], field["type"], names)
    if "default" not in field:
        raise ValueError(f'the field "{field["name"]}" has no default')
    if isinstance(field["type"], list):  # a default has the type of the first branch, and does not name it
        return branch_name(field["type"][0]), datum(field["default"], field["type"][0], names)
    return datum(field["default"], field["type"], names)


if __name__ == "__main__":
    write_all()
