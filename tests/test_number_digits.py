"""Bare numbers keep their digits, wherever they stand and whatever stands around them: thousands of documents against
Python's own parser.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from runner.compile.library import Library
from runner.compile.query import compile_format
from runner.contract import MACRO_GLOBALS
from runner.engine.messages import messages_view
from runner.functions.avro.files import FileMessage
from runner.render import Renderer
from runner.spec.formats import FormatFolders

ROOT = Path(__file__).parent.parent
NUMBERS = [
    "0",
    "-0",
    "7",
    "-12",
    "1.10",
    "-0.50",
    "1e5",
    "1E-7",
    "9.99E-308",
    "1e400",
    "0.0",
    "-0.0",
    "12345678901234567890123",
    "3.14159265358979323846264338",
    "1" * 1100 + ".25",
]
TEXTS = [
    "",
    "a",
    "1.50",
    '":1.50,',
    '\\":1.50}',
    '{"a":1.50}',
    '{"a":[1.50, 2]}',
    "[1.50]",
    "\\",
    "a\\\\",
    ": 1.50 ",
    "\ud7ff",
    "中",
    "x,1.50]",
    "-0",
    '"',
    "\t:1.5,",
]
BLANKS = ["", "", "", "", " ", "  ", "\t", " \t "]


class Number(str):
    """A bare JSON number, as its digits."""


def blank(draw: random.Random) -> str:
    return draw.choice(BLANKS)


def value(draw: random.Random, depth: int) -> str:
    """The JSON text of a random value."""
    kind = draw.randrange(9 if depth < 3 else 7)
    if kind < 4:
        return draw.choice(NUMBERS)
    if kind < 6:
        return json.dumps(draw.choice(TEXTS), ensure_ascii=draw.random() < 0.5)
    if kind == 6:
        return draw.choice(["null", "true", "false"])
    if kind == 7:
        return (
            "["
            + blank(draw)
            + ("," + blank(draw)).join(value(draw, depth + 1) + blank(draw) for _ in range(draw.randrange(4)))
            + "]"
        )
    return members(draw, draw.randrange(4), depth + 1)


def members(draw: random.Random, count: int, depth: int) -> str:
    names = draw.sample([*TEXTS[1:], *"bcdefghij"], count)
    return (
        "{"
        + ",".join(
            f"{blank(draw)}{json.dumps(name)}{blank(draw)}:{blank(draw)}{value(draw, depth)}{blank(draw)}"
            for name in names
        )
        + "}"
    )


def compact(parsed: Any) -> str:
    """A value's JSON text without blanks, numbers with their digits."""
    if isinstance(parsed, Number):
        return str(parsed)
    if isinstance(parsed, dict):
        return (
            "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{compact(v)}" for name, v in parsed.items()) + "}"
        )
    if isinstance(parsed, list):
        return "[" + ",".join(compact(v) for v in parsed) + "]"
    return json.dumps(parsed, ensure_ascii=False)


def column(parsed: Any) -> str | None:
    return None if parsed is None else str(parsed) if isinstance(parsed, str) else compact(parsed)


def test_digits_stay(spark: object) -> None:
    draw = random.Random(5)
    rows = [members(draw, draw.randrange(1, 6), 1) for _ in range(3000)]
    messages = [
        f'{{"recordType":"INSERT",{blank(draw)}"postStruct"{blank(draw)}:{row},"allMetaData":{{"timestamp":"1","table_name":"t"}}}}'
        for row in rows
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
        assert (got[number]["reason"], got[number]["after"]) == (
            None,
            {name: column(v) for name, v in expected.items()},
        ), messages[number]
