"""Canal messages, from plain to hostile, as a strategy of hypothesis, for tests against the reference.

Left out on purpose, since the contract does not decide them: blank messages (a blank line in a file is no message),
lone surrogates, a header field that stands twice as two kinds of value, negative zeros with an exponent, ordinals with
leading zeros, years at the ends of the calendar.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]
# Column name -> type, values that fit it, values that do not.
Table = dict[str, tuple[Any, Any, Any]]
HIDDEN_ROW_ID = "__#alibaba_rds_row_id#__"


class Bare(str):
    """Text that is written into the JSON without quotes: a number with exactly these digits."""


class Members(list[tuple[str, Any]]):
    """The members of an object as pairs, so that a name can stand twice."""


VALUES: dict[str, Any] = json.loads(
    (Path(__file__).parent / "tables/canal_values.json").read_text(encoding="utf-8"), parse_int=Bare, parse_float=Bare
)
PERCENT = st.integers(0, 99)


def chance(draw: Draw, percent: int) -> bool:
    """True in so many of a hundred draws; shrinks to what is usual."""
    return bool(draw(PERCENT) >= 100 - percent)


def pick(draw: Draw, values: str | Sequence[Any]) -> Any:
    """One of some values, or of those that have a name."""
    return draw(st.sampled_from(VALUES[values] if isinstance(values, str) else values))


def some(draw: Draw, values: Sequence[Any], least: int = 1, most: int | None = None) -> list[Any]:
    """Some different ones of these values, in any order."""
    return list(draw(st.lists(st.sampled_from(values), min_size=least, max_size=most or len(values), unique=True)))


@st.composite
def messages(draw: Draw) -> bytes:
    """Mostly well formed, else with a broken header field or broken as a text; without a raw line end."""
    header, kind = well_formed(draw), draw(PERCENT)
    if kind < 70:
        return written(draw, header).encode()
    return written(draw, with_hostile_fields(draw, header)).encode() if kind < 90 else broken(draw, header)


def well_formed(draw: Draw) -> dict[str, Any]:
    """A header that the contract understands; values of columns may still be hostile."""
    header: dict[str, Any] = pick(draw, [changed_rows] * 17 + [ddl] * 2 + [control])(draw)
    header |= {"database": pick(draw, "names"), "table": pick(draw, "names")}
    header |= {"es": pick(draw, "epochs"), "ts": pick(draw, "epochs")}
    header |= {"id": Bare(draw(st.integers(0, 10**6))), "gtid": pick(draw, ["", "uuid:1-5"])}
    for field in some(draw, ["gtid", "id", "sqlType", "pkNames", "isDdl", "ts"], 0, 2) if chance(draw, 25) else ():
        header.pop(field, None)
    return header


def changed_rows(draw: Draw) -> dict[str, Any]:
    """The fields of a message with one to four rows."""
    columns = table(draw)
    op = pick(draw, ["INSERT"] * 6 + ["UPDATE"] * 12 + ["DELETE"] * 4 + ["INIT", "ROW"])
    data = [row_of(draw, columns) for _ in range(pick(draw, [1, 1, 1, 2, 3, 4]))]
    header = {
        "type": op,
        "isDdl": False,
        "sql": pick(draw, ["", "", None]),
        "data": data,
        "old": None,
        "sqlType": dict.fromkeys(columns, Bare("4")),
        "mysqlType": known_types(draw, columns),
        "pkNames": list(columns)[: pick(draw, [1, 1, 1, 0, 2])] or pick(draw, [None, []]),
    }
    if op == "UPDATE" or chance(draw, 10):
        header["old"] = old_of(draw, columns, data)
    if op == "DELETE" and chance(draw, 30):
        header |= {"data": pick(draw, [None, []]), "old": data}
    return with_bare_rows(draw, header)


def with_bare_rows(draw: Draw, header: dict[str, Any]) -> dict[str, Any]:
    """The header, its single rows now and then as bare objects instead of lists; `old` now and then missing."""
    for field in ("data", "old"):
        if isinstance(header[field], list) and len(header[field]) == 1 and chance(draw, 5):
            header[field] = header[field][0]
    if header["old"] is None and chance(draw, 30):
        del header["old"]
    return header


def table(draw: Draw) -> Table:
    """One to six columns."""
    names = some(draw, VALUES["columns"], 1, 6)
    if chance(draw, 60):
        names = ["id", *(name for name in names if name != "id")]
    columns = {name: column(draw) for name in names}
    return columns | ({HIDDEN_ROW_ID: ("bigint", ["15", "16"], ["null"])} if chance(draw, 2) else {})


def column(draw: Draw) -> tuple[Any, Any, Any]:
    """A column's type text and its values; the values of a time are made, not chosen."""
    if chance(draw, 25):
        return pick(draw, "time types"), None, VALUES["no times"]
    kind = pick(draw, "types")
    return pick(draw, kind["types"]), kind["fit"], kind["unfit"]


def known_types(draw: Draw, columns: Table) -> dict[str, Any]:
    """`mysqlType`: now and then a column is missing there, or has a type and no value."""
    known = {name: column[0] for name, column in columns.items()}
    if chance(draw, 8):
        del known[pick(draw, list(known))]
    return known | ({"not there": "int"} if chance(draw, 3) else {})


def row_of(draw: Draw, columns: Table) -> Mapping[str, Any] | Members:
    """A row of a table; now and then without a column, or with a member that stands twice."""
    row = {name: value(draw, *column) for name, column in columns.items()}
    if len(row) > 1 and chance(draw, 6):
        del row[pick(draw, list(row))]
    return Members([(next(iter(row)), "overwritten"), *row.items()]) if chance(draw, 1) else row


def value(draw: Draw, type_text: Any, fitting: list[Any] | None, hostile: list[Any]) -> Any:
    """A value of a column: mostly one that fits, else null or one that does not."""
    kind = draw(PERCENT)
    if kind >= 82:
        return None if kind >= 92 else pick(draw, hostile)
    return time_text(draw, type_text.lower()) if fitting is None else pick(draw, fitting)


def time_text(draw: Draw, type_text: str) -> str:
    """A wall clock time of a type, with any fraction."""
    fraction, clock = pick(draw, "fractions"), pick(draw, "clocks")
    if type_text.startswith("time") and not type_text.startswith("timestamp"):
        return f"{pick(draw, [clock, clock, '-00:00:01', '838:59:59', '-838:59:59', '100:00:00'])}{fraction}"
    # Of gaps and overlaps of several zones, or of no night when clocks change.
    return f"{pick(draw, 'shifted') if chance(draw, 30) else pick(draw, 'dates') + ' ' + clock}{fraction}"


def old_of(draw: Draw, columns: Table, data: list[Any]) -> list[Any] | None:
    """`old` of an update: in step with `data`, null, shorter, or with empty and null elements."""
    old = [old_row(draw, columns, dict(row)) for row in data]
    kind = draw(PERCENT)
    return None if kind >= 95 else old[: draw(st.integers(0, len(old)))] if kind >= 88 else old


def old_row(draw: Draw, columns: Table, row: dict[str, Any]) -> dict[str, Any] | None:
    """Old values of some columns, not all of them different; now and then null, {} or with a column of its own."""
    kind = draw(PERCENT)
    if kind >= 90:
        return None if kind >= 96 else {}
    names = some(draw, list(columns))
    old = {name: row[name] if name in row and chance(draw, 30) else value(draw, *columns[name]) for name in names}
    return old | ({"only in old": pick(draw, [None, "1"])} if chance(draw, 5) else {})


def ddl(draw: Draw) -> dict[str, Any]:
    """The fields of a DDL message; its type may be a DML's or unknown, since `isDdl` decides."""
    type_text = pick(draw, [*VALUES["ddl"], "QUERY", "QUERY", "INSERT", "UPDATE", "FOO"])
    header = {"type": type_text, "isDdl": type_text not in VALUES["ddl"] or not chance(draw, 30)}
    return {**header, "sql": pick(draw, "statements"), **dict.fromkeys(("data", "old", "sqlType", "mysqlType"))}


def control(draw: Draw) -> dict[str, Any]:
    """The fields of a message that is neither rows nor DDL."""
    return {"type": pick(draw, "control"), "isDdl": False, "sql": "", "data": None, "old": None}


def with_hostile_fields(draw: Draw, header: dict[str, Any]) -> Members:
    """The header with one or two fields broken, missing or standing twice (the last one counts)."""
    broken_ones = some(draw, list(VALUES["hostile fields"]), 1, 2)
    for field in broken_ones:
        header[field] = pick(draw, VALUES["hostile fields"][field])
        if field == "isDdl" or chance(draw, 20):
            header["sql"] = pick(draw, [None, *VALUES["statements"]])
    if chance(draw, 15) and isinstance(header.get("old"), list):
        header["old"] = header["old"] + [{"id": "9"}] * 4  # longer than data
    if chance(draw, 15):
        del header[pick(draw, list(header))]
    rest = [field for field in header if field not in broken_ones]
    twice = some(draw, rest, 1, 1) if rest and chance(draw, 20) else []
    return Members([*((field, pick(draw, [None, "INSERT", [], Bare("1")])) for field in twice), *header.items()])


def broken(draw: Draw, header: dict[str, Any]) -> bytes:
    """A message that is cut off, goes on behind its end, has bytes that are no UTF-8, or is no object in JSON."""
    text = written(draw, header)
    place = draw(st.integers(0, len(text)))
    match pick(draw, ["cut off", "behind", "bytes", "no object", "no JSON"]):
        case "cut off":
            text = text.strip()
            return text[: 1 + place % (len(text) - 1)].encode()
        case "behind":
            return f"{text}{pick(draw, [*VALUES['behind'], text])}".encode()
        case "bytes":
            bad = pick(draw, [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\x80"])
            return bytes(text[:place].encode() + bad + text[place:].encode())
        case "no object":
            return str(pick(draw, [*VALUES["no objects"], f"[{text}]"])).encode()
    text = json_text(header, cycle([""]), "plain")
    with_member = "{" + pick(draw, "no members") + text[1:]
    return str(pick(draw, [with_member, text[:-1] + ",}", "garbage", text.replace('"', "'"), text[1:]])).encode()


def written(draw: Draw, header: dict[str, Any] | Members) -> str:
    """The header as JSON text, in any member order (of a plain header), spacing and escapes."""
    if isinstance(header, dict) and chance(draw, 50):
        header = dict(draw(st.permutations(list(header.items()))))
    blanks = cycle(pick(draw, [[""], [""], [" "], ["", " ", "  ", "\t"]]))
    outside = pick(draw, ["", "", "", " ", "\t "])
    return outside + json_text(header, blanks, pick(draw, ["plain", "plain", "ascii", "odd"])) + outside


def json_text(value: Any, blanks: Iterator[str], escapes: str) -> str:
    """A value as JSON text with these blanks between its parts."""

    def listed(parts: Iterable[str]) -> str:
        return ",".join(f"{next(blanks)}{part}{next(blanks)}" for part in parts)

    if isinstance(value, str):
        return value if isinstance(value, Bare) else string_text(value, escapes)
    if isinstance(value, (dict, Members)):
        pairs = value.items() if isinstance(value, dict) else value
        names = ((string_text(name, escapes), json_text(member, blanks, escapes)) for name, member in pairs)
        return "{" + next(blanks) + listed(f"{name}{next(blanks)}:{next(blanks)}{text}" for name, text in names) + "}"
    if isinstance(value, list):
        return "[" + listed(json_text(member, blanks, escapes) for member in value) + next(blanks) + "]"
    return json.dumps(value)


def string_text(text: str, escapes: str) -> str:
    """A string as JSON text: plain, ASCII only, or with escapes where none are needed."""
    if escapes == "odd" and text.isalnum() and text.isascii() and len(text) in (1, 4, 7):
        return '"' + "".join(f"\\u{ord(letter):04X}" for letter in text) + '"'
    found = json.dumps(text, ensure_ascii=escapes == "ascii")
    return found.replace("/", "\\/") if escapes == "odd" else found
