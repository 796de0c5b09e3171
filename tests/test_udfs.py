"""Bytes as lists of numbers and documents in shell text, without Spark."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.functions.mongo_shell import NOTHING, ShellDocument, shell_document, shell_patch
from runner.functions.udfs import DOCUMENT, TEXT_MAP, java_bytes, java_bytes_of, shell_documents, shell_patches
from tests.pages import table

IDENTIFIER = "64650cf67dc36a464e76e583"
TABLES = table("mongo_shell")


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


LONG_LISTS = [f"[{'9' * 5000}]", "[" * 10_000, "[" * 10_000 + "]" * 10_000, "[\ud800]"]


@pytest.mark.parametrize("text", [None, *TABLES["no_lists_of_bytes"], *LONG_LISTS])
def test_no_list_of_bytes(text: str | None) -> None:
    assert java_bytes(text) is None


def test_a_long_list_of_bytes() -> None:
    data = bytes(range(256)) * 1_000
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


MANY = "9" * 5000
LONG_VALUES = [
    (MANY, "int", MANY, MANY),
    ('NumberDecimal("1E10000")', "decimal", "1" + "0" * 10_000, '{"$numberDecimal":"1E10000"}'),
    ('NumberDecimal("1E-10000")', "decimal", "0." + "0" * 9_999 + "1", '{"$numberDecimal":"1E-10000"}'),
]
LONG_OWN_TEXTS = [
    (f"new Date({MANY})", "date"), (f'NumberLong("1E{MANY}")', "long"), (f'BinData({MANY}, "AA==")', "binData"),
]  # fmt: skip
# Types that nobody knows: no value is unfit for them.
UNKNOWN_TYPES = {"Foo", "Symbol", "DBRef", "foo"}


def only(document: ShellDocument) -> tuple[str, str | None]:
    """Type and text of the only column."""
    assert document.reason is None
    assert document.values is not None and document.types is not None
    assert list(document.values) == list(document.types) == ["v"]
    return document.types["v"], document.values["v"]


@pytest.mark.parametrize(("text", "kind", "canonical", "nested"), [*TABLES["values"], *LONG_VALUES])
def test_values(text: str, kind: str, canonical: str | None, nested: str) -> None:
    assert only(shell_document(f'{{"v": {text}}}')) == (kind, canonical)
    assert only(shell_document(f'{{"v": [{text}]}}')) == ("array", f"[{nested}]")
    assert only(shell_document(f'{{"v": {{"a": {text}, b:{text}}}}}')) == ("object", f'{{"a":{nested},"b":{nested}}}')
    assert only(shell_patch(f'{{"$set": {{"v": {text}}}}}')) == (kind, canonical)
    assert shell_document(f'{{"v": {text}, "w": [{text}]}}').as_sent == []
    json.loads(nested, parse_int=str)


@pytest.mark.parametrize(("text", "kind"), [*TABLES["own_texts"], *LONG_OWN_TEXTS])
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


@pytest.mark.parametrize(("text", "values"), TABLES["members"])
def test_members(text: str, values: dict[str, str]) -> None:
    found = shell_document(text)
    assert found.values == values
    assert found.types is not None and found.types.keys() == values.keys()
    assert found.removed is None and found.reason is None


@pytest.mark.parametrize("text", TABLES["no_documents"])
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


@pytest.mark.parametrize(("text", "values", "types", "removed"), TABLES["patches"])
def test_patches(text: str, values: dict[str, str | None], types: dict[str, str], removed: list[str]) -> None:
    assert shell_patch(text) == ShellDocument(values, types, [], removed, None)


@pytest.mark.parametrize("text", TABLES["unknown_patches"])
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
        ('"' + "b" * 100_000 + '"', "b" * 100_000),
        ('"' + r"\"" * 50_000 + '"', '"' * 50_000),
        ("'" + '"' * 50_000 + "'", '"' * 50_000),
        ("9" * 100_000, "9" * 100_000),
        ("[" + "1, " * 20_000 + "1]", "[" + "1," * 20_000 + "1]"),
        ("/" + "b" * 100_000 + "/", "/" + "b" * 100_000 + "/"),
        (f'BinData(0, "{"AAAA" * 50_000}")', "AAAA" * 50_000),
        (f'NumberDecimal("{"9" * 100_000}E1")', "9" * 100_000 + "0"),
        (f'NumberDecimal("{"9" * 100_000}x")', f'NumberDecimal("{"9" * 100_000}x")'),
        (f'NumberLong("{"9" * 100_000}E")', f'NumberLong("{"9" * 100_000}E")'),
        (f'ISODate("2023-05-17T09:18:31.{"0" * 100_000}x")', f'ISODate("2023-05-17T09:18:31.{"0" * 100_000}x")'),
        (f'UUID("{"a" * 100_000}")', f'UUID("{"a" * 100_000}")'),
        (" " * 100_000 + "1", "1"),
    ],
    ids=range(13),
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
    "Timestamp(", "$set", "$unset", "\\u", "\\ud800", "\\udc00", "中", "😀", "\x00", "\ufeff", "\u2028", MANY,
    "[" * 300, "{a:" * 300,
]  # fmt: skip
PUT_IN = st.just("") | st.sampled_from(PIECES) | st.text(max_size=2)
KNOWN = st.sampled_from([text for text, *_ in [*TABLES["values"], *TABLES["own_texts"]]])


@st.composite
def damaged(draw: Any, texts: st.SearchStrategy[str]) -> str:
    """Texts with a few characters cut out, put in or doubled."""
    text: str = draw(texts)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = start + draw(st.sampled_from([0, 0, 1, 1, 2, 5, 20]))
        text = text[:start] + draw(PUT_IN | st.just(text[start:stop] * 2)) + text[stop:]
    return text


def a_document(members: list[tuple[str, str]], is_patch: bool) -> str:
    text = "{" + ", ".join(f"{name}: {value}" for name, value in members) + "}"
    return f'{{"$set": {text}, "$unset": {{"c": true}}}}' if is_patch else text


MEMBERS = st.lists(st.tuples(st.sampled_from(["a", "_id", '"b"']), KNOWN), min_size=1, max_size=3)


def test_nothing_raises() -> None:
    reasons = set()

    @given(st.lists(damaged(st.builds(a_document, MEMBERS, st.booleans())), min_size=1, max_size=5))
    def check(texts: list[str]) -> None:
        for read in (shell_documents, shell_patches):
            for text, row in zip(texts, read(pa.array(texts, pa.string())).to_pylist(), strict=True):
                reasons.add(row["reason"])
                check_document(text, row)

    check()
    assert reasons == {None, "row-not-an-object", "unknown-patch"}


def check_document(text: str, row: dict[str, Any]) -> None:
    assert (row["reason"] is None) == (row["values"] is not None) == (row["types"] is not None), text
    for (name, value), (_, kind) in zip(row["values"] or [], row["types"] or [], strict=True):
        assert (value is None) == (kind == "null"), text
        if kind in ("object", "array"):
            assert isinstance(json.loads(value, parse_int=str), dict if kind == "object" else list), (text, name)


@given(st.lists(damaged(st.lists(st.integers(-140, 140), max_size=5).map(str)), max_size=4))
def test_no_list_raises(texts: list[str]) -> None:
    for text in texts:
        found = java_bytes(text)
        count = text.count(",") + 1 if text.strip("[] \t\r\n") else 0
        assert found is None or len(base64.b64decode(found, validate=True)) == count
