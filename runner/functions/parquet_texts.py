"""The canonical texts of values in columns of Arrow, as Parquet files have them, and the names of their types."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NOT_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def type_name(kind: pa.DataType, is_instant: bool = False) -> str:
    """Returns the name that SQL has for a type. Wall clocks of an old kind are instants.

    >>> [type_name(kind) for kind in (pa.int64(), pa.decimal128(10, 2), pa.timestamp("us", "UTC"), pa.list_(pa.int8()))]
    ['bigint', 'numeric(10,2)', 'timestamp with time zone', 'json']
    """
    if pa.types.is_dictionary(kind):
        return type_name(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp with time zone" if kind.tz or is_instant else "timestamp"
    return next((name for test, name in NAMES if test(kind)), "text")


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


NAMES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (lambda kind: kind in (pa.int8(), pa.int16(), pa.uint8()), "smallint"),
    (lambda kind: kind in (pa.int32(), pa.uint16()), "integer"),
    (lambda kind: kind in (pa.int64(), pa.uint32()), "bigint"),
    (lambda kind: kind == pa.uint64(), "numeric(20,0)"),
    (lambda kind: kind in (pa.float16(), pa.float32()), "real"),
    (lambda kind: kind == pa.float64(), "double precision"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (_is_bytes, "bytea"),
    (pa.types.is_nested, "json"),
)


def texts_of(column: pa.Array, is_instant: bool = False) -> list[str | None]:
    """Returns the text of each value of a column; bytes are hexadecimal."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pa.types.is_timestamp(kind):
        return _clocks(column, bool(kind.tz) or is_instant)
    if pa.types.is_time(kind):
        return _without_zeros(pc.cast(column, pa.string()))
    if pa.types.is_floating(kind):
        shortest = pc.cast(column.cast(pa.float32()) if kind == pa.float16() else column, pa.string()).to_pylist()
        return [text and NOT_NUMBERS.get(text, text) for text in shortest]
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date(kind) or kind == pa.large_string():
        return texts_in(pc.cast(column, pa.string()))
    if pa.types.is_string(kind):
        return texts_in(column)
    write = _hexadecimal if _is_bytes(kind) else _plain if pa.types.is_decimal(kind) else _nested
    values = column.to_pylist(maps_as_pydicts="lossy") if write is _nested else column.to_pylist()
    return [None if value is None else write(value) for value in values]


def texts_in(column: pa.Array) -> list[str | None]:
    return list(column.to_pylist())


def _clocks(column: pa.Array, is_instant: bool) -> list[str | None]:
    """Returns wall clocks, or instants in UTC with T and Z."""
    texts = _without_zeros(pc.cast(column.cast(pa.timestamp(column.type.unit)), pa.string()))
    return [text and f"{text.replace(' ', 'T')}Z" for text in texts] if is_instant else texts


def _without_zeros(texts: pa.Array) -> list[str | None]:
    """Returns texts without the zeros at the end of a fraction of a second."""
    return [text.rstrip("0").rstrip(".") if text and "." in text else text for text in texts_in(texts)]


def _hexadecimal(value: bytes) -> str:
    return f"\\x{value.hex()}"


def _plain(value: Decimal) -> str:
    return f"{value:f}"


def _nested(value: Any) -> str:
    """Returns JSON text, in which decimals keep their digits.

    >>> _nested({"a": [Decimal("1.50"), None, "x"], "b": b"hi"})
    '{"a":[1.50,null,"x"],"b":"aGk="}'
    """
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json_text(str(name))}:{_nested(one)}" for name, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_nested, value)) + "]"
    if isinstance(value, Decimal):
        return _plain(value)
    if isinstance(value, bytes):
        return json_text(base64.b64encode(value).decode())
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta)):
        return json_text(str(value))
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    return json_text(value)


def json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
