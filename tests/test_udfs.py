"""Bytes as lists of numbers and documents in shell text, without Spark."""

from __future__ import annotations

import base64
import json
import random
import time

import pyarrow as pa
import pytest

from runner.functions.mongo_shell import NOTHING, ShellDocument, shell_document, shell_patch
from runner.functions.udfs import DOCUMENT, TEXT_MAP, java_bytes, java_bytes_of, shell_documents, shell_patches

IDENTIFIER = "64650cf67dc36a464e76e583"
UNIQUE = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


# --- bytes as lists of numbers


def test_every_byte() -> None:
    data = bytes(range(256))
    signed = [byte - 256 if byte > 127 else byte for byte in data]
    assert java_bytes(str(signed)) == base64.b64encode(data).decode()
    for byte, number in zip(data, signed, strict=True):
        assert java_bytes(f"[{number}]") == base64.b64encode(bytes([byte])).decode()


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("[]", b""),
        ("[ ]", b""),
        ("[106, -1, 0]", b"j\xff\x00"),
        ("[106,-1,0]", b"j\xff\x00"),
        (" [ 106 ,\t-1 ,\n0 ] ", b"j\xff\x00"),
        ("[-128, 127]", b"\x80\x7f"),
    ],
)
def test_lists_of_bytes(text: str, data: bytes) -> None:
    assert java_bytes(text) == base64.b64encode(data).decode()


@pytest.mark.parametrize(
    "text",
    [
        # no list
        None, "", " ", "5", "null", "true", '"[1]"', "{}", '{"a": 1}', "soon", "(1, 2)", "1, 2", "AQID",
        # out of range
        "[128]", "[-129]", "[255]", "[1, 256]", "[99999999999999999999]", "[-99999999999999999999]", f"[{'9' * 5000}]",
        # no whole numbers
        "[1.0]", "[1.5]", "[1e2]", "[1E0]", "[NaN]", "[Infinity]", "[true]", "[false]", "[1, true]", "[null]",
        "[1, null]", '["1"]', '["\\u0031"]', "['1']",
        # nested
        "[[1]]", "[[]]", "[{}]", '[{"a": 1}]',
        # not quite a list
        "[1,]", "[,1]", "[1 2]", "[1", "1]", "[", "[1]]", "[1] x", "[1][2]", "[+1]", "[01]", "[0x1]", "[- 1]", "[1; 2]",
        "[\u00a01]", "[１]", "\ufeff[1]", "[1]\x00",
        "[" * 10_000, "[" * 10_000 + "]" * 10_000, "[\ud800]",
    ],
)  # fmt: skip
def test_no_list_of_bytes(text: str | None) -> None:
    assert java_bytes(text) is None


def test_a_long_list_of_bytes() -> None:
    data = random.Random(1).randbytes(1_000_000)
    assert java_bytes(str([byte - 256 if byte > 127 else byte for byte in data])) == base64.b64encode(data).decode()


def test_maps_of_bytes() -> None:
    maps = pa.array([[("a", "[1]"), ("b", "x")], None, [], [("c", None), ("d", "[]")], [("e", "[-1]")], None], TEXT_MAP)
    expected = [[("a", "AQ=="), ("b", None)], None, [], [("c", None), ("d", "")], [("e", "/w==")], None]
    for start in range(len(maps) + 1):
        for stop in range(start, len(maps) + 1):
            found = java_bytes_of(maps[start:stop])
            found.validate(full=True)
            assert found.type == TEXT_MAP
            assert found.to_pylist() == expected[start:stop]
    assert java_bytes_of(pa.nulls(2, TEXT_MAP)).to_pylist() == [None, None]
    assert java_bytes_of(pa.array([], TEXT_MAP)).to_pylist() == []


# --- values of documents


# Text, type, text at the top level, JSON inside of other values.
VALUES = [
    # texts
    ('"b"', "string", "b", '"b"'),
    ("'b'", "string", "b", '"b"'),
    ('""', "string", "", '""'),
    ("''", "string", "", '""'),
    ('"中 é 😀"', "string", "中 é 😀", '"中 é 😀"'),
    (r'"\"\\\/\b\f\n\r\t"', "string", '"\\/\b\f\n\r\t', r'"\"\\/\b\f\n\r\t"'),
    (r'"\u4e2d\ud83d\ude00\u0000"', "string", "中😀\0", r'"中😀\u0000"'),
    (r"'it\'s \"b\"'", "string", "it's \"b\"", r'"it' r"'s \"b\"" r'"'),
    ("'say \"b\"'", "string", 'say "b"', r'"say \"b\""'),
    ('"it\'s"', "string", "it's", '"it\'s"'),
    (r"'\\'", "string", "\\", r'"\\"'),
    ('"a\nb"', "string", "a\nb", r'"a\nb"'),
    # half a surrogate pair has no UTF-8
    (r'"a\ud800b"', "string", "a\ufffdb", '"a\ufffdb"'),
    (r'"\udc00\ud800"', "string", "\ufffd\ufffd", '"\ufffd\ufffd"'),
    (r'"\ud800\ud83d\ude00"', "string", "\ufffd😀", '"\ufffd😀"'),
    (r'"\ufeffa"', "string", "\ufeffa", '"\ufeffa"'),
    # what only looks like something else
    (rf'"ObjectId(\"{IDENTIFIER}\")"', "string", f'ObjectId("{IDENTIFIER}")', rf'"ObjectId(\"{IDENTIFIER}\")"'),
    (f"'ObjectId(\"{IDENTIFIER}\")'", "string", f'ObjectId("{IDENTIFIER}")', rf'"ObjectId(\"{IDENTIFIER}\")"'),
    ('"NumberLong(5)"', "string", "NumberLong(5)", '"NumberLong(5)"'),
    (r'"}, \"x\": [{ //"', "string", '}, "x": [{ //', r'"}, \"x\": [{ //"'),
    ('"null"', "string", "null", '"null"'),
    ('"/a/i"', "string", "/a/i", '"/a/i"'),
    # bare numbers and words
    ("0", "int", "0", "0"),
    ("-7", "int", "-7", "-7"),
    ("9" * 5000, "int", "9" * 5000, "9" * 5000),
    ("1.10", "double", "1.10", "1.10"),
    ("-0.0", "double", "-0.0", "-0.0"),
    ("1E-7", "double", "1E-7", "1E-7"),
    ("2.50e+300", "double", "2.50e+300", "2.50e+300"),
    ("1e99999", "double", "1e99999", "1e99999"),
    ("NaN", "double", "NaN", '{"$numberDouble":"NaN"}'),
    ("Infinity", "double", "Infinity", '{"$numberDouble":"Infinity"}'),
    ("-Infinity", "double", "-Infinity", '{"$numberDouble":"-Infinity"}'),
    ("true", "bool", "true", "true"),
    ("false", "bool", "false", "false"),
    ("null", "null", None, "null"),
    ("undefined", "undefined", "undefined", '{"$undefined":true}'),
    ("MinKey", "minKey", "MinKey", '{"$minKey":1}'),
    ("MaxKey", "maxKey", "MaxKey", '{"$maxKey":1}'),
    # constructors
    (f'ObjectId("{IDENTIFIER}")', "objectId", IDENTIFIER, f'{{"$oid":"{IDENTIFIER}"}}'),
    (f"ObjectId( '{IDENTIFIER}' )", "objectId", IDENTIFIER, f'{{"$oid":"{IDENTIFIER}"}}'),
    (f'new ObjectId ("{IDENTIFIER}")', "objectId", IDENTIFIER, f'{{"$oid":"{IDENTIFIER}"}}'),
    ('ISODate("2023-05-17T09:18:31.439Z")', "date", "2023-05-17T09:18:31.439Z", '{"$date":"2023-05-17T09:18:31.439Z"}'),
    (
        'ISODate("2023-05-17T17:18:31.500+08:00")',
        "date",
        "2023-05-17T09:18:31.5Z",
        '{"$date":"2023-05-17T09:18:31.5Z"}',
    ),
    ('ISODate("2023-05-17T03:48:31-0530")', "date", "2023-05-17T09:18:31Z", '{"$date":"2023-05-17T09:18:31Z"}'),
    ('ISODate("2023-05-17T01:18:31+08")', "date", "2023-05-16T17:18:31Z", '{"$date":"2023-05-16T17:18:31Z"}'),
    ('ISODate("2023-05-17T09:18:31.000")', "date", "2023-05-17T09:18:31Z", '{"$date":"2023-05-17T09:18:31Z"}'),
    ('ISODate("2023-05-17T09:18Z")', "date", "2023-05-17T09:18:00Z", '{"$date":"2023-05-17T09:18:00Z"}'),
    ('ISODate("2024-02-29")', "date", "2024-02-29T00:00:00Z", '{"$date":"2024-02-29T00:00:00Z"}'),
    ("new Date(1684315111439)", "date", "2023-05-17T09:18:31.439Z", '{"$date":"2023-05-17T09:18:31.439Z"}'),
    ("Date(0)", "date", "1970-01-01T00:00:00Z", '{"$date":"1970-01-01T00:00:00Z"}'),
    ("new Date(-1)", "date", "1969-12-31T23:59:59.999Z", '{"$date":"1969-12-31T23:59:59.999Z"}'),
    ("new Date(-62135596800000)", "date", "0001-01-01T00:00:00Z", '{"$date":"0001-01-01T00:00:00Z"}'),
    ("new Date(253402300799999)", "date", "9999-12-31T23:59:59.999Z", '{"$date":"9999-12-31T23:59:59.999Z"}'),
    ("NumberLong(5)", "long", "5", '{"$numberLong":"5"}'),
    ('NumberLong("-9223372036854775808")', "long", "-9223372036854775808", '{"$numberLong":"-9223372036854775808"}'),
    ("NumberInt(5)", "int", "5", "5"),
    ('NumberInt("-5")', "int", "-5", "-5"),
    ('NumberDecimal("1.50")', "decimal", "1.50", '{"$numberDecimal":"1.50"}'),
    ('NumberDecimal("1E+3")', "decimal", "1000", '{"$numberDecimal":"1E+3"}'),
    ('NumberDecimal("-12.340E-3")', "decimal", "-0.012340", '{"$numberDecimal":"-12.340E-3"}'),
    ('NumberDecimal("12.34E+1")', "decimal", "123.4", '{"$numberDecimal":"12.34E+1"}'),
    ('NumberDecimal("0E-3")', "decimal", "0.000", '{"$numberDecimal":"0E-3"}'),
    ('NumberDecimal("-0E+3")', "decimal", "-0", '{"$numberDecimal":"-0E+3"}'),
    ('NumberDecimal("+1.5e00002")', "decimal", "150", '{"$numberDecimal":"+1.5e00002"}'),
    ('NumberDecimal("1E10000")', "decimal", "1" + "0" * 10_000, '{"$numberDecimal":"1E10000"}'),
    ('NumberDecimal("1E-10000")', "decimal", "0." + "0" * 9_999 + "1", '{"$numberDecimal":"1E-10000"}'),
    ('NumberLong("9.2E+18")', "long", "9200000000000000000", '{"$numberLong":"9.2E+18"}'),
    ("NumberInt(1.5e1)", "int", "15", "1.5e1"),
    ('NumberDecimal("NaN")', "decimal", "NaN", '{"$numberDecimal":"NaN"}'),
    ('BinData(0, "AAH/")', "binData", "AAH/", '{"$binary":{"base64":"AAH/","subType":"00"}}'),
    ('BinData(128,"")', "binData", "", '{"$binary":{"base64":"","subType":"80"}}'),
    ('HexData(0, "0001fF")', "binData", "AAH/", '{"$binary":{"base64":"AAH/","subType":"00"}}'),
    ('HexData(255, "")', "binData", "", '{"$binary":{"base64":"","subType":"ff"}}'),
    # one UUID, in each notation
    (f'UUID("{UNIQUE}")', "binData", UNIQUE, f'{{"$uuid":"{UNIQUE}"}}'),
    (f'UUID("{UNIQUE.upper()}")', "binData", UNIQUE, f'{{"$uuid":"{UNIQUE}"}}'),
    (f"UUID('{UNIQUE.replace('-', '')}')", "binData", UNIQUE, f'{{"$uuid":"{UNIQUE}"}}'),
    ('BinData(4, "a6e4EJ2tEdGAtADAT9QwyA==")', "binData", UNIQUE, f'{{"$uuid":"{UNIQUE}"}}'),
    (f'HexData(4, "{UNIQUE.replace("-", "").upper()}")', "binData", UNIQUE, f'{{"$uuid":"{UNIQUE}"}}'),
    # bytes of subtype 4 that are none; each driver has its own order for subtype 3
    ('BinData(4, "AAH/")', "binData", "AAH/", '{"$binary":{"base64":"AAH/","subType":"04"}}'),
    (
        'BinData(3, "a6e4EJ2tEdGAtADAT9QwyA==")',
        "binData",
        "a6e4EJ2tEdGAtADAT9QwyA==",
        '{"$binary":{"base64":"a6e4EJ2tEdGAtADAT9QwyA==","subType":"03"}}',
    ),
    # the same byte: the last four bits say nothing
    ('BinData(0, "/x==")', "binData", "/w==", '{"$binary":{"base64":"/w==","subType":"00"}}'),
    ("Timestamp(1684344064, 1)", "timestamp", "1684344064:1", '{"$timestamp":{"t":1684344064,"i":1}}'),
    ("/^a.*b$/i", "regex", "/^a.*b$/i", '{"$regularExpression":{"pattern":"^a.*b$","options":"i"}}'),
    (r"/[\"{,}]\/\d/", "regex", r"/[\"{,}]\/\d/", r'{"$regularExpression":{"pattern":"[\\\"{,}]\\/\\d","options":""}}'),
    # objects and lists
    ("{}", "object", "{}", "{}"),
    ("[ ]", "array", "[]", "[]"),
    ("{ a : 1 , 'b' : [ 1 , null ] }", "object", '{"a":1,"b":[1,null]}', '{"a":1,"b":[1,null]}'),
    ('{"$oid": "x", "a\\"b": 1.50}', "object", r'{"$oid":"x","a\"b":1.50}', r'{"$oid":"x","a\"b":1.50}'),
    (
        "[[NumberLong(5)], {a: MinKey}]",
        "array",
        '[[{"$numberLong":"5"}],{"a":{"$minKey":1}}]',
        '[[{"$numberLong":"5"}],{"a":{"$minKey":1}}]',
    ),
]  # fmt: skip

# Constructors that nobody knows, or whose arguments do not fit them: their own text, and the type.
OWN_TEXTS = [
    ("Foo(1, 2)", "Foo"),
    ("Foo()", "Foo"),
    ('Symbol("a)b")', "Symbol"),
    (f'DBRef("t", ObjectId("{IDENTIFIER}"))', "DBRef"),
    ('foo({"a": [1, ")"]})', "foo"),
    ('ObjectId("xyz")', "objectId"),
    ("ObjectId()", "objectId"),
    ("ObjectId(null)", "objectId"),
    (f'ObjectId("{IDENTIFIER}", 1)', "objectId"),
    ('ISODate("soon")', "date"),
    ("ISODate()", "date"),
    ('ISODate("2023-02-31T00:00:00Z")', "date"),
    ('ISODate("2023-05-17T25:00:00Z")', "date"),
    ('ISODate("2023-05-17T09:18:31+99:99")', "date"),
    ('ISODate("2023-05-17T09:18:31+08:60")', "date"),
    # of what would this be a fraction?
    ('ISODate("2023-05-17T09:18.5Z")', "date"),
    ('ISODate("0001-01-01T00:00:00+08:00")', "date"),
    ('ISODate("0000-01-01T00:00:00Z")', "date"),
    ("new Date(-62135596800001)", "date"),
    ("new Date(253402300800000)", "date"),
    (f"new Date({'9' * 5000})", "date"),
    ("new Date(1.5)", "date"),
    ('new Date("soon")', "date"),
    ("new Date(null)", "date"),
    ('NumberLong("many")', "long"),
    ('NumberLong("")', "long"),
    ("NumberLong(1.5)", "long"),
    ("NumberLong(true)", "long"),
    ("NumberLong(1, 2)", "long"),
    ('NumberInt("1.5")', "int"),
    ('NumberLong("1.25E+1")', "long"),
    ('NumberLong("15E-1")', "long"),
    ('NumberLong("1E")', "long"),
    (f'NumberLong("1E{"9" * 5000}")', "long"),
    # bare in JSON, this would be none
    ('NumberInt("007")', "int"),
    ('NumberDecimal("many")', "decimal"),
    ('BinData(0, "!!!")', "binData"),
    ('BinData(0, "AA")', "binData"),
    ('BinData(0, "A===")', "binData"),
    ('BinData(0, "AA-_")', "binData"),
    ('BinData(256, "AA==")', "binData"),
    ('BinData(-1, "AA==")', "binData"),
    (f'BinData({"9" * 5000}, "AA==")', "binData"),
    ('HexData(0, "abc")', "binData"),
    ('HexData(0, "zz")', "binData"),
    ('UUID("x")', "binData"),
    ("UUID()", "binData"),
    ('Timestamp("a", "b")', "timestamp"),
    ("Timestamp(1684344064)", "timestamp"),
    ('Timestamp("01", "1")', "timestamp"),
]


# Types that nobody knows: no value is unfit for them.
UNKNOWN_TYPES = {"Foo", "Symbol", "DBRef", "foo"}


def only(document: ShellDocument) -> tuple[str, str | None]:
    """Type and text of the only column."""
    assert document.reason is None
    assert document.values is not None and document.types is not None
    assert list(document.values) == list(document.types) == ["v"]
    return document.types["v"], document.values["v"]


@pytest.mark.parametrize(("text", "kind", "canonical", "nested"), VALUES)
def test_values(text: str, kind: str, canonical: str | None, nested: str) -> None:
    assert only(shell_document(f'{{"v": {text}}}')) == (kind, canonical)
    assert only(shell_document(f'{{"v": [{text}]}}')) == ("array", f"[{nested}]")
    assert only(shell_document(f'{{"v": {{"a": {text}, b:{text}}}}}')) == ("object", f'{{"a":{nested},"b":{nested}}}')
    assert only(shell_patch(f'{{"$set": {{"v": {text}}}}}')) == (kind, canonical)
    assert shell_document(f'{{"v": {text}, "w": [{text}]}}').as_sent == []
    json.loads(nested, parse_int=str)


@pytest.mark.parametrize(("text", "kind"), OWN_TEXTS)
def test_constructors_that_are_not_read(text: str, kind: str) -> None:
    assert only(shell_document(f'{{"v": {text} }}')) == (kind, text)
    assert shell_document(f'{{"v": {text}, "w": 1}}').as_sent == ([] if kind in UNKNOWN_TYPES else ["v"])
    assert only(shell_document(f'{{"v": [{text}]}}')) == ("array", json.dumps([text], ensure_ascii=False))
    assert only(shell_patch(f'{{"$set": {{"v": {text}}}}}')) == (kind, text)


def test_a_constructor_with_words_to_spare() -> None:
    assert only(shell_document("{v: MinKey()}")) == ("minKey", "MinKey")
    assert only(shell_document('{v: Foo (\n1 ,"b" )}')) == ("Foo", 'Foo (\n1 ,"b" )')


@pytest.mark.parametrize("text", ["1E10001", "1E-10001", "1E99999", "1e999999", f"1E{'9' * 5000}", ".5E3"])
def test_exponents_that_are_not_written_out(text: str) -> None:
    document = shell_document(f'{{"v": NumberDecimal("{text}")}}')
    assert only(document) == ("decimal", text)
    assert document.as_sent == ["v"]


def test_exponents_of_a_whole_document() -> None:
    """All together become at most 100,000 characters longer; or all stay as sent."""
    columns = {f"c{number}": 'NumberDecimal("1E9998")' for number in range(11)}
    for count, (text, unfit) in {10: ("1" + "0" * 9998, 0), 11: ("1E9998", 11)}.items():
        some = dict(list(columns.items())[:count])
        text_of_all = "{" + ", ".join(f"{name}: {value}" for name, value in some.items()) + ", d: 1}"
        for document in (shell_document(text_of_all), shell_patch(f"{{$set: {text_of_all}}}")):
            assert document.values == dict.fromkeys(some, text) | {"d": "1"}
            assert document.as_sent == list(some)[:unfit]


# --- documents


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{}", {}),
        (" \t\r\n{ } \n", {}),
        ('{"_id":1,"v":"b"}', {"_id": "1", "v": "b"}),
        (" {\n_id :1 ,\t'v'\n: \"b\" } ", {"_id": "1", "v": "b"}),
        (
            "{$a: 1, b_2: 2, NaN: 3, ObjectId: 4, new: 5, null: 6}",
            {"$a": "1", "b_2": "2", "NaN": "3", "ObjectId": "4", "new": "5", "null": "6"},
        ),
        (
            '{"": 1, "a b": 2, "a.b": 3, "中": 4, "q\\"r": 5, "ObjectId(1)": 6}',
            {"": "1", "a b": "2", "a.b": "3", "中": "4", 'q"r': "5", "ObjectId(1)": "6"},
        ),
        (r"""{'it\'s': 1, '"': 2, "\u0061": 3}""", {"it's": "1", '"': "2", "a": "3"}),
        ("{a: 1, b: 2, a: 3}", {"b": "2", "a": "3"}),
        ("{a: {b: 1, c: 2, b: 3}}", {"a": '{"c":2,"b":3}'}),
    ],
)
def test_members(text: str, values: dict[str, str]) -> None:
    found = shell_document(text)
    assert found.values == values
    assert found.types is not None and found.types.keys() == values.keys()
    assert found.removed is None and found.reason is None


NO_DOCUMENTS = [
    "", " ", "soon", "null", "5", '"x"', "[]", "[{}]", f'ObjectId("{IDENTIFIER}")', "{}}", "{} x", "{}{}", "{},", "x{}",
    "\ufeff{}", "\x00{}", "{}\x00", "({})",
    # commas and colons
    "{,}", "{a: 1,}", "{a: 1,,b: 2}", "{,a: 1}", "{a 1}", "{a: 1 b: 2}", "{a}", "{a:}", "{:1}", "{a:: 1}", "{a = 1}",
    "{a: [1,]}", "{a: [,1]}", "{a: [1 2]}", "{a: [1,,2]}", "{a: {b: 1,}}",
    "{a: Foo(1,)}", "{a: Foo(,)}", "{a: Foo(1 2)}", "{a: 1 2}", '{a: "b" "c"}', "{a: {} {}}",
    # tokens that do not end
    "{", '{"', "{'", "{a", "{a:", "{a: 1", "{a: 1,", '{a: "b', '{a: "b}', r'{a: "b\"}', "{a: 'b}", r"{a: 'b\'}",
    "{a: [", "{a: [1", "{a: [1}", "{a: {", "{a: {b: 1}", "{a: Foo(", "{a: Foo(1", "{a: Foo(1}",
    '{a: ObjectId("1}', "{a: /b}", "{a: /b", "{a: new", "{a: -", "{a: \\",
    # no names, no values
    "{1: 2}", "{[a]: 1}", "{null(): 1}", "{a: soon}", "{a: new}", "{a: new true}", "{a: new Date}", "{a: Date}",
    "{a: ObjectId}", "{a: nan}", "{a: None}", "{a: TRUE}", "{a: )}", "{a: ,}", "{a: //}", "{a: #}",
    "{a: 01}", "{a: +1}", "{a: .5}", "{a: 1.}", "{a: 1e}", "{a: 1e+}", "{a: 0x10}", "{a: --1}", "{a: - 1}",
    "{a: 1_000}", "{a: 1n}", "{a: 1.2.3}", "{a: -NaN}", "{a: +Infinity}", "{a: １}",
    # escapes that JSON does not have
    r'{a: "\x41"}', r'{a: "\u12"}', r'{a: "\uzzzz"}', r'{a: "\a"}', r'{"\x41": 1}',
    # comments, calculations
    "{a: 1 /* b */}", "{a: 1} // b", "{a: 1 + 2}", "{a: Foo(1).b}", "{a: Foo(1)(2)}", "{...a}",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_DOCUMENTS)
def test_no_documents(text: str) -> None:
    nothing = NOTHING._replace(reason="row-not-an-object")
    assert shell_document(text) == nothing
    assert shell_patch(text) == nothing
    if text.startswith("{a: "):
        # Behind something that is right, and as what an update sets.
        assert shell_document(f'{{"_id": 1, {text[1:]}') == nothing
        assert shell_patch(f'{{"$set": {text}, "$unset": {{b: true}}}}') == nothing


def test_no_text() -> None:
    assert shell_document(None) == shell_patch(None) == NOTHING


# --- updates


@pytest.mark.parametrize(
    ("text", "values", "types", "removed"),
    [
        ('{"$set": {"c1": "aaa"}}', {"c1": "aaa"}, {"c1": "string"}, []),
        ('{"$unset": {"c1": true}, "$set": {"column1": "aaa"}}', {"column1": "aaa"}, {"column1": "string"}, ["c1"]),
        ("{$set: {b: NumberLong(5)}, $unset: {c: '', a: 1}}", {"b": "5"}, {"b": "long"}, ["c", "a"]),
        ('{"$unset": {"a.b": true}}', {}, {}, ["a.b"]),
        ('{"$set": {"a.b": 1, "a.0.c": null}}', {"a.b": "1", "a.0.c": None}, {"a.b": "int", "a.0.c": "null"}, []),
        ('{"$set": {}}', {}, {}, []),
        ('{"$set": {"$inc": 1}}', {"$inc": "1"}, {"$inc": "int"}, []),
        ('{"$set": {"a": "{$inc: {b: 1}}"}}', {"a": "{$inc: {b: 1}}"}, {"a": "string"}, []),
    ],
)
def test_patches(text: str, values: dict[str, str | None], types: dict[str, str], removed: list[str]) -> None:
    assert shell_patch(text) == ShellDocument(values, types, [], removed, None)


@pytest.mark.parametrize(
    "text",
    [
        '{"$inc": {"a": 1}}', '{"$push": {"a": 1}}', '{"$rename": {"a": "b"}}', '{"$Set": {"a": 1}}', '{"": {"a": 1}}',
        '{"$set": {"a": 1}, "$inc": {"b": 1}}', '{"$inc": {"b": 1}, "$set": {"a": 1}}', '{"$set": {"a": 1}, "b": 2}',
        '{"b": 2}', '{"_id": 1, "v": "b"}',
        '{"$set": null}', '{"$set": 5}', '{"$set": "a"}', '{"$set": []}', '{"$unset": ["a"]}',
        '{"$set": {"a": 1}, "$unset": "b"}', f'{{"$set": ObjectId("{IDENTIFIER}")}}',
    ],
)  # fmt: skip
def test_unknown_patches(text: str) -> None:
    assert shell_patch(text) == NOTHING._replace(reason="unknown-patch")


# --- deep and large


def test_brackets_as_deep_as_a_database_allows() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        text = opening * 99 + "1" + closing * 99
        assert only(shell_document(f'{{"v": {text}}}'))[1] == text
        assert only(shell_patch(f'{{"$set": {{"v": {text}}}}}'))[1] == text


@pytest.mark.parametrize(
    ("opening", "closing"), [("[", "]"), ("{a:", "}"), ("Foo(", ")"), ("[{a:Foo(", ")}]"), ("new Foo(", ")")]
)
def test_brackets_without_end(opening: str, closing: str) -> None:
    for text in (opening * 10_000, opening * 10_000 + "1" + closing * 10_000):
        for whole in (text, f"{{v: {text}", f"{{v: {text}}}", f"{{$set: {{v: {text}}}}}"):
            assert shell_document(whole).reason == "row-not-an-object"
            assert shell_patch(whole).reason == "row-not-an-object"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('"' + "b" * 1_000_000 + '"', "b" * 1_000_000),
        ('"' + r"\"" * 500_000 + '"', '"' * 500_000),
        ("'" + '"' * 1_000_000 + "'", '"' * 1_000_000),
        ("9" * 1_000_000, "9" * 1_000_000),
        ("[" + "1, " * 100_000 + "1]", "[" + "1," * 100_000 + "1]"),
        ("/" + "b" * 1_000_000 + "/", "/" + "b" * 1_000_000 + "/"),
        (f'BinData(0, "{"AAAA" * 250_000}")', "AAAA" * 250_000),
        (f'NumberDecimal("{"9" * 1_000_000}E1")', "9" * 1_000_000 + "0"),
        (f'NumberDecimal("{"9" * 1_000_000}x")', f'NumberDecimal("{"9" * 1_000_000}x")'),
        (f'NumberLong("{"9" * 1_000_000}E")', f'NumberLong("{"9" * 1_000_000}E")'),
        (f'ISODate("2023-05-17T09:18:31.{"0" * 1_000_000}x")', f'ISODate("2023-05-17T09:18:31.{"0" * 1_000_000}x")'),
        (f'UUID("{"a" * 1_000_000}")', f'UUID("{"a" * 1_000_000}")'),
        (" " * 1_000_000 + "1", "1"),
    ],
    ids=[
        "text",
        "escapes",
        "other_quotes",
        "digits",
        "list",
        "pattern",
        "bytes",
        "decimal",
        "no_decimal",
        "no_long",
        "no_date",
        "no_uuid",
        "blanks",
    ],
)
def test_large_values(text: str, canonical: str) -> None:
    started = time.perf_counter()
    assert only(shell_document(f'{{"v": {text}}}'))[1] == canonical
    # What ends nowhere takes no longer than what ends.
    assert shell_document(f'{{"v": {text[:-1]}').reason == "row-not-an-object"
    assert shell_document(f'{{"v": {text}x').reason == "row-not-an-object"
    assert time.perf_counter() - started < 20


# --- columns of Arrow


def test_columns_of_documents() -> None:
    texts = pa.array(["{a: 1, b: null, c: UUID(1)}", None, "soon", "{}"], pa.string())
    expected = [
        {
            "values": [("a", "1"), ("b", None), ("c", "UUID(1)")],
            "types": [("a", "int"), ("b", "null"), ("c", "binData")],
            "as_sent": ["c"],
            "removed": None,
            "reason": None,
        },
        {"values": None, "types": None, "as_sent": None, "removed": None, "reason": None},
        {"values": None, "types": None, "as_sent": None, "removed": None, "reason": "row-not-an-object"},
        {"values": [], "types": [], "as_sent": [], "removed": None, "reason": None},
    ]
    found = shell_documents(texts)
    assert found.type == DOCUMENT
    assert found.to_pylist() == expected
    assert shell_documents(texts[1:3]).to_pylist() == expected[1:3]
    assert shell_documents(texts[:0]).to_pylist() == []
    assert shell_documents(texts[:0]).type == DOCUMENT


def test_columns_of_patches() -> None:
    texts = pa.array([None, "{$set: {a: 1}, $unset: {b: true}}", "{$inc: {a: 1}}"], pa.string())
    expected = [
        {"values": None, "types": None, "as_sent": None, "removed": None, "reason": None},
        {"values": [("a", "1")], "types": [("a", "int")], "as_sent": [], "removed": ["b"], "reason": None},
        {"values": None, "types": None, "as_sent": None, "removed": None, "reason": "unknown-patch"},
    ]
    assert shell_patches(texts).to_pylist() == expected
    assert shell_patches(texts[1:]).to_pylist() == expected[1:]
    assert shell_patches(texts).type == DOCUMENT


# --- anything


PIECES = [
    "{", "}", "[", "]", "(", ")", ",", ":", '"', "'", "\\", "/", "-", ".", " ", "\n", "$", "_", "0", "9", "e", "new ",
    "null", "NaN", "Date", "ObjectId(", "BinData(", "NumberInt(",
    "Timestamp(", "$set", "$unset", "\\u", "\\ud800", "\\udc00", "中", "😀", "\x00", "\ufeff", "\u2028", "9" * 5000,
    "[" * 300, "{a:" * 300,
]  # fmt: skip


def mutated(chance: random.Random, text: str) -> str:
    for _ in range(chance.randint(1, 4)):
        start = chance.randint(0, len(text))
        stop = min(len(text), start + chance.choice([0, 0, 1, 1, 2, 5, 20]))
        piece = chance.choice(["", chance.choice(PIECES), text[start:stop] * 2, chr(chance.randint(0, 0x7FF))])
        text = text[:start] + piece + text[stop:]
    return text


def test_nothing_raises() -> None:
    chance = random.Random(20230517)
    values = [text for text, *_ in VALUES if len(text) < 200] + [text for text, _ in OWN_TEXTS if len(text) < 200]
    texts = []
    for _ in range(5_000):
        text = (
            "{"
            + ", ".join(
                f"{chance.choice(['a', '_id', chr(34) + 'b' + chr(34)])}: {chance.choice(values)}"
                for _ in range(chance.randint(1, 3))
            )
            + "}"
        )
        texts.append(mutated(chance, chance.choice([text, f'{{"$set": {text}, "$unset": {{"c": true}}}}'])))
    for found in (shell_documents(pa.array(texts, pa.string())), shell_patches(pa.array(texts, pa.string()))):
        rows = found.to_pylist()
        assert {row["reason"] for row in rows} >= {None, "row-not-an-object"}
        for text, row in zip(texts, rows, strict=True):
            assert (row["reason"] is None) == (row["values"] is not None) == (row["types"] is not None), text
            for (name, value), (_, kind) in zip(row["values"] or [], row["types"] or [], strict=True):
                assert (value is None) == (kind == "null"), text
                if kind in ("object", "array"):
                    nested = json.loads(value, parse_int=str)
                    assert isinstance(nested, dict if kind == "object" else list), (text, name)


def test_no_list_raises() -> None:
    chance = random.Random(20230518)
    for _ in range(5_000):
        text = mutated(chance, str([chance.randint(-140, 140) for _ in range(chance.randint(0, 5))]))
        found = java_bytes(text)
        assert found is None or len(base64.b64decode(found, validate=True)) == (
            text.count(",") + 1 if text.strip("[] \t\r\n") else 0
        ), text
