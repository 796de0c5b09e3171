"""Values of queries as plain text, numbers, lists and dicts; plain values as Spark expects them; types as SQL."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from datetime import date, datetime, timezone
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

from pyspark.sql import Row
from pyspark.sql import types as T

from runner.contract import SEQ_PARTS
from runner.engine.errors import QueryFailed
from runner.render import name as quoted


def plain(value: Any, kind: T.DataType) -> Any:
    """Returns a value of a query as text, number, list or dict; instants as ISO 8601 in UTC without trailing zeros."""
    if value is None:
        return None
    match kind:
        case T.MapType():
            return {key: plain(v, kind.valueType) for key, v in value}
        case T.ArrayType():
            return [plain(v, kind.elementType) for v in value]
        case T.StructType():
            return {f.name: plain(value[f.name], f.dataType) for f in kind}
        case T.TimestampType():
            return iso(value)
        case T.TimestampNTZType() | T.DateType():
            return value.isoformat()
        case T.DecimalType():
            return int(value) if kind.scale == 0 else str(value)
        case T.BinaryType():
            return value.hex()
    return value


def observed(metrics: Row) -> dict[str, Any]:
    """Returns the metrics of a batch, by name. Spark Connect gives the values and their schema separately.

    >>> observed(Row(rows=3)), observed(Row(values=[3], schema={"fields": [{"name": "rows"}]}))
    ({'rows': 3}, {'rows': 3})
    """
    found = metrics.asDict()
    return (
        dict(zip((field["name"] for field in found["schema"]["fields"]), found["values"]))
        if found.keys() == {"values", "schema"}
        else found
    )


def iso(value: datetime) -> str:
    """Returns an instant as ISO 8601 in UTC, without trailing zeros.

    >>> iso(datetime(2024, 5, 1, 10, 0, 0, 500000, tzinfo=timezone.utc))
    '2024-05-01T10:00:00.5Z'
    """
    text = value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"
    return text.rjust(20 if "." not in text else len(text), "0")


def sql_type(kind: T.DataType, instead: Mapping[str, str]) -> str:
    """Returns the type as SQL writes it, with the names of fields quoted; `instead` maps types to those that replace
    them.

    >>> sql_type(T.StructType([T.StructField("a b", T.ArrayType(T.ShortType()))]), {"smallint": "int"})
    'struct<`a b`:array<int>>'
    """
    match kind:
        case T.ArrayType():
            return f"array<{sql_type(kind.elementType, instead)}>"
        case T.MapType():
            return f"map<{sql_type(kind.keyType, instead)},{sql_type(kind.valueType, instead)}>"
        case T.StructType():
            return f"struct<{','.join(f'{quoted(f.name)}:{sql_type(f.dataType, instead)}' for f in kind)}>"
    text = kind.simpleString()
    return instead.get(text, text)


def column_types(kind: T.StructType, instead: Mapping[str, str]) -> dict[str, str]:
    """Returns the columns, with their types in SQL."""
    return {f.name: sql_type(f.dataType, instead) for f in kind}


def fitted(value: Any, kind: T.DataType) -> Any:
    """Returns a YAML value as `plain` writes the equal value of this type; returns it as it is if the type has no such
    value.

    >>> fitted("10", T.DecimalType(10, 2)), fitted("10.001", T.DecimalType(10, 2)), fitted("10.0", T.LongType())
    ('10.00', '10.001', 10)
    """
    value = _spelled_out(value, kind)
    if value is None or not _has_shape(value, kind):
        return value
    match kind:
        case T.StructType():
            return {**value, **{f.name: fitted(value.get(f.name), f.dataType) for f in kind}}
        case T.MapType():
            return {key: fitted(one, kind.valueType) for key, one in value.items()}
        case T.ArrayType():
            return [fitted(one, kind.elementType) for one in value]
    try:
        return plain(_exact(_scalar(value, kind), kind), kind)
    except (ValueError, ArithmeticError):
        return value


def _exact(value: Any, kind: T.DataType) -> Any:
    """Returns a number as its type keeps it; raises ArithmeticError if a decimal has more digits than the type."""
    match kind:
        case T.DecimalType():
            digits = Context(prec=kind.precision, traps=[Inexact, InvalidOperation])
            return value.quantize(Decimal(1).scaleb(-kind.scale), context=digits)
        case T.FloatType():
            return struct.unpack("f", struct.pack("f", value))[0]
    return value


def nullable(kind: T.DataType) -> Any:
    """Returns a type in which everything may be null, at any depth."""
    match kind:
        case T.StructType():
            return T.StructType([T.StructField(f.name, nullable(f.dataType)) for f in kind])
        case T.ArrayType():
            return T.ArrayType(nullable(kind.elementType))
        case T.MapType():
            return T.MapType(kind.keyType, nullable(kind.valueType))
    return kind


def typed(value: Any, kind: T.DataType) -> Any:
    """Returns a YAML value (text, None, list, dict) as Spark expects it for a type; raises QueryFailed if it is no
    value of the type. A number is enough for a place in the order of changes.
    """
    if value is None:
        return None
    value = _spelled_out(value, kind)
    if not _has_shape(value, kind):
        raise _not_typed(value, kind)
    match kind:
        case T.StructType():
            unknown = [key for key in value if key not in kind.names]
            if unknown:
                raise QueryFailed(
                    f'the given rows have a column "{unknown[0]}", and the input does not: {", ".join(kind.names)}'
                )
            return Row(*(typed(value.get(f.name), f.dataType) for f in kind))
        case T.MapType():
            return {typed(k, kind.keyType): typed(v, kind.valueType) for k, v in value.items()}
        case T.ArrayType():
            return [typed(v, kind.elementType) for v in value]
    try:
        return _scalar(value, kind)
    except (ValueError, ArithmeticError):
        raise _not_typed(value, kind) from None


# Types whose YAML values are not texts.
SHAPES: Mapping[type[T.DataType], type] = {T.StructType: dict, T.MapType: dict, T.ArrayType: list}


def _spelled_out(value: Any, kind: T.DataType) -> Any:
    """Returns the place in the order of changes that a number stands for; other values as they are."""
    if isinstance(value, str) and isinstance(kind, T.StructType) and tuple(kind.names) == SEQ_PARTS:
        return {"generation": "0", "phase": "1", "position": [value], "arrival": ["0"], "row": "0"}
    return value


def _has_shape(value: Any, kind: T.DataType) -> bool:
    return isinstance(value, SHAPES.get(type(kind), str))


def _not_typed(value: Any, kind: T.DataType) -> QueryFailed:
    return QueryFailed(f"{json.dumps(value, ensure_ascii=False)} is no {kind.simpleString()}")


def _scalar(value: str, kind: T.DataType) -> Any:
    match kind:
        case T.IntegerType() | T.LongType() | T.ShortType() | T.ByteType():
            return _whole(value)
        case T.DoubleType() | T.FloatType():
            return float(value)
        case T.DecimalType():
            return Decimal(value)
        case T.BooleanType():
            return _flag(value)
        case T.DateType():
            return date.fromisoformat(value)
        case T.TimestampType():
            instant = datetime.fromisoformat(value.replace("Z", "+00:00"))
            return instant if instant.tzinfo else instant.replace(tzinfo=timezone.utc)
        case T.TimestampNTZType():
            return datetime.fromisoformat(value)
        case T.BinaryType():
            return bytes.fromhex(value)
    return value


def _whole(value: str) -> int:
    """Returns the whole number that a text writes; raises ValueError for other numbers.

    >>> _whole("10"), _whole("10.0"), _whole(str(2**63))
    (10, 10, 9223372036854775808)
    """
    number = Decimal(value)
    if number != number.to_integral_value():
        raise ValueError(value)
    return int(number)


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(value)
    return value.lower() == "true"
