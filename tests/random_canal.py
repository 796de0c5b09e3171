"""Random but reproducible Canal messages, from plain to hostile, for tests against the reference.

>>> messages(7, 3) == messages(7, 3), len(messages(7, 3)), any(b"\\n" in message for message in messages(7, 300))
(True, 3, False)

Left out on purpose, since the contract does not decide them: blank messages (a blank line in a file is no message),
lone surrogates, a header field that stands twice as two kinds of value, negative zeros with an exponent, ordinals with
leading zeros, years at the ends of the calendar.
"""

import json
from random import Random

WELL_FORMED_SHARE = 0.8


class Bare(str):
    """Text that is written into the JSON without quotes: a number with exactly these digits."""


class Members(list):
    """The members of an object as pairs, so that a name can stand twice."""


LABELS_64 = ",".join(f"'l{number}'" for number in range(64))
TEXTS = [
    "",
    "a",
    "null",
    " blanks ",
    "日本語",
    "😀",
    'quo"te',
    "back\\slash",
    "tab\t",
    "new\nline\r",
    "line\u2028",
    "\0",
    "/",
    "'",
    "{}",
    "[1",
    "1.0",
    "é",
    "e\u0301",
    "<&>",
    "true",
    "x" * 300,
]
NESTED = [
    {"b": [Bare("1.0"), "1", None, True], "a": "é"},
    {},
    [],
    [Bare("1E+2"), {"x": Bare("-0.50")}],
    {"z": {"y": '"\\'}},
]
FRACTIONS = ["", "", ".0", ".000", ".100", ".120000", ".000001", ".5", ".123456"]

# (type texts, values that fit, values that do not)
COLUMN_TYPES = [
    (
        [
            "int",
            "INT(11)",
            "bigint(20) unsigned",
            "smallint(5) UNSIGNED ZEROFILL",
            "mediumint(9)",
            "tinyint(1)",
            "year(4)",
            "serial",
            "BOOL",
            "boolean",
            "integer unsigned",
            "Year",
        ],
        ["0", "-1", "00042", "18446744073709551615", Bare("7"), Bare("123456789012345678901234567890"), Bare("-0")],
        ["abc", "", True, Bare("1E+2"), Bare("1.0"), "1e5", {"a": Bare("1")}],
    ),
    (
        ["decimal(10,2)", "DECIMAL(65,30) UNSIGNED", "numeric(5)", "dec", "fixed(3,1) unsigned zerofill", "Decimal"],
        [
            "1.50",
            "0.00",
            "-12.000",
            Bare("1.50"),
            Bare("12345678901234567890123456789012345678901234567890.10"),
            "1.50E+1",
            "1E-3",
            Bare("1E+2"),
            "-1.5e-07",
            "12.5E1",
            "0.05E+1",
            "1E0",
            "1E+10000",
            "9" * 60 + "." + "1" * 30,
        ],
        [
            "1E+10001",
            "1E-10001",
            "1.5E99999999999999999999",
            "abc",
            "",
            " 1",
            "1,5",
            "1E",
            "E5",
            "--1",
            "1.2.3",
            "0x1F",
            True,
            "Infinity",
            "１",
            {"a": Bare("1")},
        ],
    ),
    (
        ["double", "FLOAT(7,4)", "real", "double unsigned"],
        ["1.5", "1.0E10", Bare("0.10"), Bare("1e-7"), Bare("3")],
        ["NaN", "", "abc", False],
    ),
    (["bit(1)", "BIT(64)", "bit"], ["0", "1", "18446744073709551615", Bare("5")], ["b'1'", "", True]),
    (
        ["varchar(10)", "TEXT", "char(3)", "longtext", "nvarchar(5)", "varchar(255)"],
        TEXTS,
        [Bare("1.50"), True, False, *NESTED],
    ),
    (["json", "JSON"], ['{"a": 1.0}', "[]", "null", '"x"', Bare("1.10"), *NESTED], ["{", "", True]),
    (
        ["enum('a','b')", "ENUM('it''s','x,y','(p)','日本')", "enum('A','a','unsigned')", "Enum('b','a')"],
        ["1", "2", "0", "a", Bare("1")],
        ["99", "nope", "-1", "1.0", "A,a", "99999999999999999999", True, "it's", "日本", "(p)"],
    ),
    (["enum('1','2','10')", "enum('5','6')"], ["1", "2", "0", "5", "10"], ["7", "x"]),
    (["enum", "set", "set()"], ["1", "x"], ["2"]),
    (
        ["set('a','b','c')", "SET('it''s','日 本','(x)')", "set('c','a','b')"],
        ["0", "1", "3", "5", "7", "a", "a,b", Bare("6")],
        ["8", "-1", "a,nope", "a, b", ",", "日 本", "it's,(x)", "1.0", False],
    ),
    (
        [f"set({LABELS_64})"],
        ["18446744073709551615", "9223372036854775808", "1", "0", "l0,l63"],
        ["18446744073709551616"],
    ),
    (
        ["blob", "VARBINARY(16)", "binary(2)", "tinyblob", "LONGBLOB", "mediumblob"],
        ["", "abc", "\0\x01\xff", "é", "\x80\x9f\xa0", "a\r\n", "\x85"],
        ["日本", "😀", "Āb", Bare("12"), True, {"a": None}],
    ),
    (
        ["geometry", "POINT", "polygon", "multilinestring", "geomcollection", "geometrycollection"],
        ["\0\0\0\0\x01\x01\0\0\0\0\0\0\0\0\0\xf0?\0\0\0\0\0\0\0@", "\xe6\x10\0\0\x01"],
        ["POINT(1 1) 点"],
    ),
    (["date", "DATE"], ["2024-02-29", "0000-00-00", "9999-12-31"], ["2024-02-30", "", "x", Bare("20240101")]),
    (
        ["hyperloglog(3)", "double precision", "varchar(5) binary", "", "unsigned", Bare("3"), None, {"t": "int"}],
        ["x", "1.50", "", "日本", "1E+2"],
        [Bare("1.50"), True, *NESTED],
    ),
]
TIME_TYPES = ["timestamp", "TIMESTAMP(6)", "datetime(3)", "DATETIME", "time(6)", "Time"]
DATES = ["2024-05-01", "1999-12-31", "2024-02-29", "1970-01-01", "2037-07-01"]
CLOCKS = ["00:00:00", "10:20:30", "23:59:59"]
SHIFTED = [  # gaps and overlaps of several zones
    "2024-03-10 02:30:00",
    "2024-11-03 01:30:00",
    "2024-03-31 02:30:00",
    "2024-10-27 02:30:00",
    "1986-05-04 02:30:00",
    "1991-09-15 00:30:00",
    "2024-10-06 02:15:00",
    "2011-12-30 12:00:00",
]
NO_TIMES = [
    "0000-00-00 00:00:00",
    "2024-02-30 10:00:00",
    "2023-13-01 00:00:00",
    "2024-01-01 24:00:00",
    "2024-01-01 23:59:60",
    "not a time",
    "",
    "2024-01-01",
    "2024-01-01T10:00:00Z",
    Bare("1704067200"),
    True,
    {"a": Bare("1")},
]
COLUMN_NAMES = [
    "id",
    "name",
    "v",
    "名字",
    "a b",
    "x,y",
    "A",
    "a",
    'quo"te',
    "back\\slash",
    "p.q",
    "p[0]",
    "$",
    "$x",
    "`tick`",
    "it's",
    "😀",
    "é",
    "key",
    "data",
    "type",
    "*",
    "{n}",
    "select",
    "#id",
    "\t",
]
HIDDEN_ROW_ID = "__#alibaba_rds_row_id#__"
STATEMENTS = [
    "create table t (a int)",
    "CREATE UNIQUE INDEX i ON t (a)",
    "/* by hand */ alter table t add b int",
    "dropping",
    "drop index i on t",
    "-- why\nDROP TABLE t",
    "# why\n  truncate table t",
    "rename table a to b",
    "grant select on t to u",
    "create\tindex i on t(a)",
    "/* a */ -- b\n/* c\n */Alter table `索引` drop index i",
    "insert into t values (1)",
    "CREATE DATABASE index_d",
    "alter table t comment 'create index'",
    "/*+ hint */drop view v",
]
DDL_TYPES = ["CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX", "QUERY"]
CONTROL_TYPES = ["XACOMMIT", "XAROLLBACK", "MHEARTBEAT", "GTID"]
TIMES = [Bare("1683008290000"), Bare("1683008290626"), "1683008290620", Bare("1"), Bare("253402300799999")]
ODD_TIMES = [
    Bare("0"),
    "0",
    None,
    Bare("-1"),
    "",
    "x",
    Bare("1.5"),
    Bare("1683008290000.0"),
    Bare("1E12"),
    " 1683008290000",
    [],
    Bare("253402300800000"),
    Bare("99999999999999999999999999"),
    "2023-05-02 06:18:10",
    True,
    {"a": Bare("1")},
]
NAMES = ["d", "Shop", "数据库", "a.b", " d ", 'quo"te', "null", "😀"]
ODD_NAMES = ["", None, Bare("5"), Bare("1.0"), True, {"a": [Bare("1.0"), "é"]}, []]
HOSTILE_FIELDS = {
    "es": ODD_TIMES,
    "ts": ODD_TIMES,
    "database": ODD_NAMES,
    "table": ODD_NAMES,
    "type": [None, "insert", "FOO", Bare("1"), "TRANSACTIONBEGIN", True, {"a": "INSERT"}, " INSERT"],
    "gtid": ["", "null", None, Bare("7"), {"a": "b"}],
    "id": [None, "null", "", Bare("1.0"), "x", [Bare("1")]],
    "pkNames": [
        None,
        "id",
        [],
        ["missing"],
        ["id", "missing"],
        ["id", "id"],
        {"id": "id"},
        [Bare("1")],
        Bare("1"),
        [HIDDEN_ROW_ID],
    ],
    "mysqlType": [None, "int", [], {}, Bare("1"), True, [{"id": "int"}]],
    "sqlType": [None, "x", [], Bare("1")],
    "data": [None, [], [None], ["x"], "x", Bare("1"), True, [[]], [{}], {}, [{"id": "1"}, None], [{}, Bare("1")]],
    "old": [None, [], [None], ["x"], "x", Bare("1"), False, [[]], [{}], {}, {"id": "0"}],
    "isDdl": [None, "true", "TRUE", Bare("1"), "x", True, True],
}


def messages(seed: int, count: int) -> list[bytes]:
    """So many messages, the same for the same seed; none holds a raw line end."""
    random = Random(seed)
    return [message(random) for _ in range(count)]


def message(random: Random) -> bytes:
    """One message: mostly well formed, else with a broken header field or broken as a text."""
    header = well_formed(random)
    if random.random() < WELL_FORMED_SHARE:
        return written(random, header).encode("utf-8")
    if random.random() < 0.6:
        return written(random, with_hostile_fields(random, header)).encode("utf-8")
    broken = random.choice([truncated, with_trailing_text, with_bad_bytes, no_object, no_json])
    return broken(random, header)


def well_formed(random: Random) -> dict:
    """A header that the contract understands; values of columns may still be hostile."""
    kinds = [changed_rows, ddl, control]
    header = random.choices(kinds, weights=[85, 10, 5])[0](random)
    header |= {
        "database": random.choice(NAMES),
        "table": random.choice(NAMES),
        "es": random.choice(TIMES),
        "ts": random.choice(TIMES),
        "id": Bare(random.randrange(10**6)),
        "gtid": random.choice(["", "uuid:1-5"]),
    }
    for field in ("gtid", "id", "sqlType", "pkNames", "isDdl", "ts"):
        if random.random() < 0.05:
            header.pop(field, None)
    return header


def changed_rows(random: Random) -> dict:
    """The fields of a message with one to four rows."""
    types = table(random)
    type_text = random.choices(["INSERT", "UPDATE", "DELETE", "INIT", "ROW"], weights=[25, 50, 17, 4, 4])[0]
    data = [row_of(random, types) for _ in range(random.choice([1, 1, 1, 2, 3, 4]))]
    header = {
        "type": type_text,
        "isDdl": False,
        "sql": random.choice(["", "", None]),
        "data": data,
        "old": None,
        "sqlType": {name: Bare("4") for name in types},
        "mysqlType": known_types(random, types),
        "pkNames": list(types)[: random.choice([0, 1, 1, 1, 2])] or random.choice([None, []]),
    }
    if type_text == "UPDATE" or random.random() < 0.1:
        header["old"] = old_of(random, types, data)
    if type_text == "DELETE" and random.random() < 0.3:
        header |= {"data": random.choice([None, []]), "old": data}
    return with_bare_rows(random, header)


def with_bare_rows(random: Random, header: dict) -> dict:
    """The header, its single rows now and then as bare objects instead of lists; `old` now and then missing."""
    for field in ("data", "old"):
        if isinstance(header[field], list) and len(header[field]) == 1 and random.random() < 0.05:
            header[field] = header[field][0]
    if header["old"] is None and random.random() < 0.3:
        del header["old"]
    return header


def table(random: Random) -> dict:
    """Column name -> (type text, values that fit, values that do not); one to six columns."""
    names = random.sample(COLUMN_NAMES, random.randint(1, 6))
    if random.random() < 0.6:
        names = ["id"] + [name for name in names if name != "id"]
    columns = {name: column(random) for name in names}
    if random.random() < 0.02:
        columns[HIDDEN_ROW_ID] = ("bigint", ["15", "16"], ["null"])
    return columns


def column(random: Random) -> tuple:
    """A column's type text and its values; the values of a time are made, not chosen."""
    if random.random() < 0.25:
        return random.choice(TIME_TYPES), None, NO_TIMES
    types, fitting, hostile = random.choice(COLUMN_TYPES)
    return random.choice(types), fitting, hostile


def known_types(random: Random, types: dict) -> dict:
    """`mysqlType`: now and then a column is missing there, or has a type and no value."""
    known = {name: type_text for name, (type_text, *_) in types.items() if random.random() < 0.97}
    return known | ({"not there": "int"} if random.random() < 0.03 else {})


def row_of(random: Random, types: dict) -> dict | Members:
    """A row of a table; now and then without a column, or with a member that stands twice."""
    row = {name: value(random, *column) for name, column in types.items() if random.random() < 0.98}
    row = row or dict.fromkeys(types, "1")
    if random.random() < 0.01:
        return Members([(next(iter(row)), "overwritten"), *row.items()])
    return row


def value(random: Random, type_text, fitting: list | None, hostile: list):
    """A value of a column: mostly one that fits, else null or one that does not."""
    choice = random.random()
    if choice < 0.08:
        return None
    if choice < 0.18:
        return random.choice(hostile)
    return random.choice(fitting) if fitting is not None else time_text(random, type_text.lower())


def time_text(random: Random, type_text: str) -> str:
    """A wall clock time of a type, with any fraction."""
    fraction = random.choice(FRACTIONS)
    if type_text.startswith("time") and not type_text.startswith("timestamp"):
        return random.choice([*CLOCKS, "-00:00:01", "838:59:59", "-838:59:59", "100:00:00"]) + fraction
    if random.random() < 0.3:
        return random.choice(SHIFTED) + fraction
    return f"{random.choice(DATES)} {random.choice(CLOCKS)}{fraction}"


def old_of(random: Random, types: dict, data: list):
    """`old` of an update: in step with `data`, null, shorter, or with empty and null elements."""
    old = [old_row(random, types, dict(row)) for row in data]
    choice = random.random()
    if choice < 0.05:
        return None
    return old[: random.randint(0, len(old))] if choice < 0.12 else old


def old_row(random: Random, types: dict, row: dict) -> dict | None:
    """Old values of some columns, not all of them different; now and then null, {} or with a column of its own."""
    choice = random.random()
    if choice < 0.04:
        return None
    if choice < 0.10:
        return {}
    names = random.sample(list(types), random.randint(1, len(types)))
    old = {name: row[name] if name in row and random.random() < 0.3 else value(random, *types[name]) for name in names}
    return old | ({"only in old": random.choice([None, "1"])} if random.random() < 0.05 else {})


def ddl(random: Random) -> dict:
    """The fields of a DDL message; its type may be a DML's or unknown, since `isDdl` decides."""
    type_text = random.choice([*DDL_TYPES, "QUERY", "QUERY", "INSERT", "UPDATE", "FOO"])
    named = type_text in DDL_TYPES and random.random() < 0.3
    return {
        "type": type_text,
        "isDdl": not named,
        "sql": random.choice(STATEMENTS),
        "data": None,
        "old": None,
        "sqlType": None,
        "mysqlType": None,
        "pkNames": None,
    }


def control(random: Random) -> dict:
    """The fields of a message that is neither rows nor DDL."""
    return {"type": random.choice(CONTROL_TYPES), "isDdl": False, "sql": "", "data": None, "old": None}


def with_hostile_fields(random: Random, header: dict) -> Members:
    """The header with one or two fields broken, missing or standing twice (the last one counts)."""
    header = dict(header)
    broken = random.sample(list(HOSTILE_FIELDS), random.choice([1, 1, 2]))
    for field in broken:
        header[field] = random.choice(HOSTILE_FIELDS[field])
        if field == "isDdl" or random.random() < 0.2:
            header["sql"] = random.choice([None, *STATEMENTS])
    if random.random() < 0.15 and isinstance(header.get("old"), list):
        header["old"] = header["old"] + [{"id": "9"}] * 4  # longer than data
    if random.random() < 0.15:
        del header[random.choice(list(header))]
    twice = [
        (field, random.choice([None, "INSERT", [], Bare("1")]))
        for field in header
        if field not in broken and random.random() < 0.02
    ]
    return Members([*twice, *header.items()])


def written(random: Random, header: dict | Members) -> str:
    """The header as JSON text, in any member order (of a plain header), spacing and escapes."""
    if isinstance(header, dict) and random.random() < 0.5:
        header = dict(random.sample(list(header.items()), len(header)))
    blanks = random.choice([[""], [""], [" "], ["", " ", "  ", "\t"]])
    outside = random.choice(["", "", "", " ", "\t "])
    return outside + json_text(random, header, blanks, random.choice(["plain", "plain", "ascii", "odd"])) + outside


def json_text(random: Random, value, blanks: list[str], escapes: str) -> str:
    """A value as JSON text."""

    def blank() -> str:
        return random.choice(blanks)

    if isinstance(value, str):
        return value if isinstance(value, Bare) else string_text(random, value, escapes)
    if isinstance(value, (dict, Members)):
        pairs = value.items() if isinstance(value, dict) else value
        parts = [
            f"{string_text(random, name, escapes)}{blank()}:{blank()}{json_text(random, member, blanks, escapes)}"
            for name, member in pairs
        ]
        return "{" + blank() + f"{blank()},{blank()}".join(parts) + blank() + "}"
    if isinstance(value, list):
        return "[" + ",".join(blank() + json_text(random, member, blanks, escapes) for member in value) + blank() + "]"
    return json.dumps(value)


def string_text(random: Random, text: str, escapes: str) -> str:
    """A string as JSON text: plain, ASCII only, or with escapes where none are needed."""
    if escapes == "odd" and text.isalnum() and text.isascii() and len(text) < 40 and random.random() < 0.2:
        return '"' + "".join(f"\\u{ord(letter):04X}" for letter in text) + '"'
    written_text = json.dumps(text, ensure_ascii=escapes == "ascii")
    return written_text.replace("/", "\\/") if escapes == "odd" else written_text


def truncated(random: Random, header: dict) -> bytes:
    """The beginning of a message."""
    text = written(random, header).strip()
    return text[: random.randint(1, len(text) - 1)].encode("utf-8")


def with_trailing_text(random: Random, header: dict) -> bytes:
    """A message with something behind it."""
    behind = ["}", " x", ",", "{}", " {", "\t[]", "null", "\0", "\ufeff", '""', "//", written(random, header)]
    return (written(random, header) + random.choice(behind)).encode("utf-8")


def with_bad_bytes(random: Random, header: dict) -> bytes:
    """A message with bytes that are no UTF-8."""
    text = written(random, header).encode("utf-8")
    place = random.randint(0, len(text))
    return text[:place] + random.choice([b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\x80"]) + text[place:]


def no_object(random: Random, header: dict) -> bytes:
    """JSON that is no object."""
    texts = ["[]", "null", "1", " 1.50 ", '"x"', "true", "[" + written(random, header) + "]", "[{}]"]
    return random.choice(texts).encode("utf-8")


def no_json(random: Random, header: dict) -> bytes:
    """A text that is nearly JSON."""
    text = json_text(random, header, [""], "plain")
    member = random.choice(
        [
            '"n":NaN,',
            '"n":-Infinity,',
            '"n":01,',
            '"n":.5,',
            '"n":1.,',
            '"n":+1,',
            '"n":"\t",',
            "'n':1,",
            "n:1,",
            ",",
            '"n":1 ',
            '"n":"\\x",',
            '"n":"\\u12",',
            '"n":True,',
            "/* n */",
            '"n":,',
            '"n" 1,',
            '"n":0x1,',
        ]
    )
    texts = ["{" + member + text[1:], text[:-1] + ",}", "garbage", text.replace('"', "'"), text[1:]]
    return random.choice(texts).encode("utf-8")
