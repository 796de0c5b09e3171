"""Bare numbers keep their digits, wherever they stand and whatever stands around them: thousands of documents against
Python's own parser.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from runner.compile.library import Library
from runner.compile.query import compile_format
from runner.contract import MACRO_GLOBALS
from runner.engine.messages import messages_view
from runner.functions.avro.files import FileMessage
from runner.render import Renderer
from runner.spec.formats import FormatFolders
from tests.drawn import drawn

ROOT = Path(__file__).parent.parent
NUMBERS = st.sampled_from(
    [
        "0", "-0", "7", "-12", "1.10", "-0.50", "1e5", "1E-7", "9.99E-308", "1e400", "0.0", "-0.0",
        "12345678901234567890123", "3.14159265358979323846264338", "1" * 1100 + ".25",
    ]
)  # fmt: skip
TEXTS = st.sampled_from(
    [
        "", "a", "b", "c", "1.50", '":1.50,', '\\":1.50}', '{"a":1.50}', '{"a":[1.50, 2]}', "[1.50]", "\\", "a\\\\",
        ": 1.50 ", "\ud7ff", "中", "x,1.50]", "-0", '"', "\t:1.5,",
    ]
)  # fmt: skip
BLANKS = st.sampled_from(["", "", "", " ", "  ", "\t", " \t "])
QUOTED = st.builds(json.dumps, TEXTS, ensure_ascii=st.booleans())


class Number(str):
    """A bare JSON number, as its digits."""


def joined(opening: str, parts: Iterable[tuple[str, ...]], closing: str) -> str:
    return opening + ",".join("".join(part) for part in parts) + closing


def lists(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    items = st.lists(st.tuples(BLANKS, values, BLANKS), max_size=3)
    return st.builds(joined, st.just("["), items, st.just("]"))


def objects(values: st.SearchStrategy[str], least: int = 0) -> st.SearchStrategy[str]:
    member = st.tuples(BLANKS, QUOTED.filter(lambda name: name != '""'), BLANKS, st.just(":"), BLANKS, values, BLANKS)
    members = st.lists(member, min_size=least, max_size=4, unique_by=lambda parts: json.loads(parts[1]))
    return st.builds(joined, st.just("{"), members, st.just("}"))


SCALARS = NUMBERS | NUMBERS | QUOTED | st.sampled_from(["null", "true", "false"])
ROWS = objects(st.recursive(SCALARS, lambda values: lists(values) | objects(values), max_leaves=6), least=1)


def compact(parsed: Any) -> str:
    """A value's JSON text without blanks, numbers with their digits."""
    if isinstance(parsed, Number):
        return str(parsed)
    if isinstance(parsed, dict):
        members = (f"{json.dumps(name, ensure_ascii=False)}:{compact(v)}" for name, v in parsed.items())
        return "{" + ",".join(members) + "}"
    if isinstance(parsed, list):
        return "[" + ",".join(compact(v) for v in parsed) + "]"
    return json.dumps(parsed, ensure_ascii=False)


def column(parsed: Any) -> str | None:
    return None if parsed is None else str(parsed) if isinstance(parsed, str) else compact(parsed)


def test_digits_stay(spark: object) -> None:
    sent = drawn(st.tuples(BLANKS, BLANKS, ROWS), 1000)
    rows = [row for _, _, row in sent]
    messages = [
        f'{{"recordType":"INSERT",{before}"postStruct"{behind}:{row},'
        '"allMetaData":{"timestamp":"1","table_name":"t"}}'
        for before, behind, row in sent
    ]
    renderer = Renderer([ROOT / "macros"], {**MACRO_GLOBALS, "ref": str})
    library = Library(renderer)
    session = spark.fresh(library)
    messages_view(session, [FileMessage(0, 0, m.encode()) for m in messages], "json", "oms_default_messages")
    spec = FormatFolders((ROOT / "formats",)).load("oms_default")
    query = library.complete(compile_format(renderer.call, spec, "oms_default", None))
    session.register(query.functions, query.sql_functions)
    got = {row["seq"]["arrival"][0]: row for row in session.rows(query.sql)[1]}
    for number, row in enumerate(rows):
        expected = json.loads(row, parse_float=Number, parse_int=Number)
        after = {name: column(v) for name, v in expected.items()}
        assert (got[number]["reason"], got[number]["after"]) == (None, after), messages[number]
