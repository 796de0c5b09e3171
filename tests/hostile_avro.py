"""Records of Avro in which one value is hostile: for each value that a schema has room for, all that may trouble a
reader. What is encoded is fastavro's work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tests.avro_cases import branch_name

DIGITS = [
    "", " 1", "-", "+5", ".5", "1.", "1_000", "٣", "0x10", "NaN", "-Infinity", "1e5", "-1.5E-7", "1e10000", "1e-10000",
    "1e10001", "1e99999", "1e999999999999", "9" * 39, "-" + "9" * 5000, "18446744073709551616", "1" * 70,
]  # fmt: skip
CLOCKS = [
    "1624614713.201", "-62135596801", "253402300800", "999999999999.999999999", "2021-12-16 12:31:49.3+00",
    "0001-01-01 00:00:00+18", "9999-12-31 23:59:59-18", "2024-01-01 00:00:00 No/Where",
    "2024-02-30 25:61:61.999999999", "0000-00-00", "24:00:00", "-838:59:59", "+99999-01-01T00:00:00Z",
]  # fmt: skip
ZONES = ["Asia/Shanghai", "+18:59", "-18:00", "No/Where", "America/", "UTC", "../../etc/passwd", "A/" * 5000]
NAMES = [".", "..", "a.b.c.d.e", "." * 5000, "\\u002E", "id", "Id", "`", "'", '"', "%", "*", "\\"]
NESTED = [
    "null", "{}", "[", '{"PRIMARY":', '{"PRIMARY":[null,1,{}]}', '{"PRIMARY":"id"}', '{"PRIMARY":["id","id"]}',
    '{"PRIMARY":[]}', '{"PRIMARY":["none"]}', "[" * 20_000, '{"a":' * 5000 + "1" + "}" * 5000, "[106, -1, 0]", "[999]",
]  # fmt: skip
CHARACTERS = ["\0", "\uffff", "\ufffe", "😀", "\u2028", "e\u0301", "a" * 50_000, "é" * 20_000]
TEXTS = [*DIGITS, *CLOCKS, *ZONES, *NAMES, *NESTED, *CHARACTERS, "drop /* ", "create unique index" + " " * 20_000]
INTS = [0, 1, -1, 13, 60, 99, 100, 9999, 10_000, 2**31 - 1, -(2**31), 999_999_999, 10**9]
LONGS = [*INTS, 2**31, 2**32, 2**53, 253402300799, 253402300800, -62135596801, 10**15, 10**18, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7e308, 1e22, -1e-7]
BYTES = [b"", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xd8\0", b"\xf4\x90\x80\x80", b"a" * 50_000]
SCALARS: dict[str, list[Any]] = {
    "null": [None],
    "boolean": [False, True],
    "int": INTS,
    "long": LONGS,
    "float": [value for value in FLOATS if not 3.4e38 < abs(value) < math.inf],
    "double": FLOATS,
    "bytes": BYTES,
    "string": TEXTS,
}


def hostile_records(schema: Any, names: dict[str, Any], usual: Any) -> Iterator[Any]:
    """A record with each value hostile in turn; the others are the `usual` ones. `schema` and `names` are fastavro's.
    Of an item of a list, and of a value of a map, there is at least one in `usual`.
    """
    return _values(schema, names, usual, ())


def filled(schema: Any, record: dict[str, Any]) -> dict[str, Any]:
    """The record with the least value in each field that it lacks."""
    least: dict[str, Any] = _least(schema, {})
    return {**least, **record}


def _values(schema: Any, names: dict[str, Any], usual: Any, above: tuple[str, ...]) -> Iterator[Any]:
    match schema:
        case str() if schema in names:
            if schema not in above:
                yield from _values(names[schema], names, usual, (*above, schema))
        case list():
            for branch in schema:
                yield from ((branch_name(branch), value) for value in _branch(branch, names, usual, above))
        case {"type": "record", "fields": fields}:
            known = usual if isinstance(usual, dict) else {}
            usually = {field["name"]: known.get(field["name"], _least(field["type"], names)) for field in fields}
            for field in fields:
                for value in _values(field["type"], names, usually[field["name"]], above):
                    yield {**usually, field["name"]: value}
        case {"type": "array", "items": items}:
            yield from _lists(items, names, usual if isinstance(usual, list) else [], above)
        case {"type": "map", "values": values}:
            yield from _maps(values, names, usual if isinstance(usual, dict) else {}, above)
        case {"type": "enum", "symbols": symbols}:
            yield from symbols
        case {"type": "fixed", "size": size}:
            yield from (bytes(size), b"\xff" * size)
        case {"type": str(scalar)} | str(scalar):
            yield from SCALARS[scalar]


def _branch(branch: Any, names: dict[str, Any], usual: Any, above: tuple[str, ...]) -> Iterator[Any]:
    """The usual value counts only in its own branch."""
    is_own = isinstance(usual, tuple) and usual[0] == branch_name(branch)
    return _values(branch, names, usual[1] if is_own else None, above)


def _lists(items: Any, names: dict[str, Any], usual: list[Any], above: tuple[str, ...]) -> Iterator[Any]:
    """Empty, too long, all the same, and with each value in place of the first."""
    first = usual[0] if usual else _least(items, names)
    yield from ([], [first] * (len(usual) + 1), [first] * 1000)
    for value in _values(items, names, first, above):
        yield [value, *usual[1:]]


def _maps(values: Any, names: dict[str, Any], usual: dict[str, Any], above: tuple[str, ...]) -> Iterator[Any]:
    """Empty, with names that are hostile, and with each value under each of the names."""
    least = _least(values, names)
    yield from ({}, dict.fromkeys(TEXTS, least), {f"c{number}": least for number in range(1000)})
    for value in _values(values, names, least, above):
        yield {**dict.fromkeys(usual, value), "": value}


def _least(schema: Any, names: dict[str, Any]) -> Any:
    """A value of the type that holds as little as can be."""
    match schema:
        case str() if schema in names:
            return _least(names[schema], names)
        case list():
            return branch_name(schema[0]), _least(schema[0], names)
        case {"type": "record", "fields": fields}:
            return {field["name"]: _least(field["type"], names) for field in fields}
        case {"type": "enum", "symbols": symbols}:
            return symbols[0]
        case {"type": "fixed", "size": size}:
            return bytes(size)
        case {"type": "array"}:
            return []
        case {"type": "map"}:
            return {}
        case {"type": str(scalar)} | str(scalar):
            return SCALARS[scalar][0]
