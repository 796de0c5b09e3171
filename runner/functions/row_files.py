"""The reader of dumps: files of rows (values between commas or tabs, Parquet, lines of JSON). Each row becomes a
message that names its table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet

from runner.functions.avro.files import Content, plain_path, without_gzip
from runner.functions.parquet_texts import json_text, texts_of, type_name

Values = Sequence[str | None]


class RowFiles(NamedTuple):
    """The files of a dump. `form` is csv, text, parquet or lines (of JSON). `null` is the text of a null value.
    `tables` are the names of tables, in parts, with the names of their columns in the order of the dump, if these are
    declared. `taken_at` is the instant of the dump as a text, empty if it is not known.
    """

    form: str
    has_header: bool = True
    null: str = ""
    tables: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    taken_at: str = ""


class Row(NamedTuple):
    """A row of a file, with the number of the line in which it begins. `values` are one for each column, or the row is
    the JSON text `document`; or `problem` says why the text `raw` is no row.
    """

    line: int
    values: Values = ()
    document: bytes | None = None
    problem: str = ""
    raw: bytes = b""


MOST_RAW = 1 << 16
NAME_PARTS = ("table", "schema", "database", "tenant")
BOM = b"\xef\xbb\xbf"


def row_messages(path: str, content: Content, files: RowFiles) -> Iterator[bytes]:
    """Yields a message for each row of a file: a JSON object with the names of the table and the `row`, or with the
    `problem` of a row that cannot be read, its `line` and its text.
    """
    name, data, damage = without_gzip(path, content)
    table, columns = table_of(name, files)
    head = dict(zip(NAME_PARTS, reversed(table)))
    if files.taken_at:
        head["taken_at"] = files.taken_at
    if damage:
        yield _problem(head, Row(1, problem=f"a file that cannot be unpacked: {damage}"))
    elif files.form == "parquet":
        yield from _parquet_messages(head, data)
    elif files.form == "lines":
        for row in _json_rows(data):
            yield _problem(head, row) if row.document is None else _message(head, row.document)
    else:
        yield from _delimited_messages(head, data, columns, files)


def count_rows(path: str, content: Content, files: RowFiles) -> int:
    """Returns the number of the messages of a file."""
    if files.form != "parquet":
        return sum(1 for _ in row_messages(path, content, files))
    _, data, damage = without_gzip(path, content)
    try:
        return 1 if damage else int(pa.parquet.ParquetFile(pa.py_buffer(data)).metadata.num_rows)
    except (pa.ArrowException, OSError):
        return 1


def table_of(path: str, files: RowFiles) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the name of the table that a file has rows of, and its columns, as far as they are declared: the one
    table that there is, else the one with the name of the file.

    >>> table_of("file:/d/shop.orders.csv", RowFiles("csv", tables=((("shop", "orders"), ("id",)), (("items",), ()))))
    (('shop', 'orders'), ('id',))
    >>> table_of("file:/d/customers.txt", RowFiles("text"))
    (('customers',), ())
    """
    if len(files.tables) == 1:
        return files.tables[0]
    stem = tuple(plain_path(path).rsplit("/", 1)[-1].split("."))
    stem = stem[:-1] if len(stem) > 1 else stem
    declared = (one for one in files.tables if one[0] == stem or one[0][-len(stem) :] == stem)
    return next(declared, (stem[-len(NAME_PARTS) :], ()))


def _json(value: Mapping[str, str | None]) -> bytes:
    return json_text(value).encode()


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _message(head: dict[str, str], row: bytes) -> bytes:
    return b'%b,"row":%b}' % (_json(head)[:-1], row)


def _problem(head: dict[str, str], row: Row) -> bytes:
    raw = row.raw[:MOST_RAW].decode(errors="replace")
    return _json({**head, "problem": row.problem, "line": str(row.line), "text": raw})


# --- Parquet


def _parquet_messages(head: dict[str, str], data: Content) -> Iterator[bytes]:
    try:
        file = pa.parquet.ParquetFile(pa.py_buffer(data), coerce_int96_timestamp_unit="us")
        instants = {
            file.schema.column(number).name
            for number in range(len(file.schema))
            if file.schema.column(number).physical_type == "INT96"
        }
        types = {field.name: type_name(field.type, field.name in instants) for field in file.schema_arrow}
        with_types = b'%b,"types":%b' % (_json(head)[:-1], _json(types))
        for batch in file.iter_batches(4096):
            columns = [texts_of(column, name in instants) for name, column in zip(types, batch.columns)]
            for values in zip(*columns):
                yield b'%b,"row":%b}' % (with_types, _json(dict(zip(types, values))))
    except (pa.ArrowException, OSError) as error:
        yield _problem(head, Row(1, problem=f"a file that is not Parquet or is damaged: {error}"))


# --- lines of JSON


def _json_rows(content: Content) -> Iterator[Row]:
    for number, (start, end) in enumerate(_lines(content), 1):
        line = content[start:end].strip()
        if not line:
            continue
        try:
            # Numbers stay texts: nobody needs their values here, and some have more digits than Python takes.
            found = json.loads(line.decode(), parse_int=str, parse_float=str, parse_constant=_no_number)
            if isinstance(found, dict):
                yield Row(number, document=line)
                continue
            problem = "no object, with a member for each column"
        except (ValueError, RecursionError) as error:
            problem = f"no JSON: {error}"
        yield Row(number, problem=problem, raw=line)


def _lines(content: Content) -> Iterator[tuple[int, int]]:
    """Yields where lines begin and end, without their line feeds."""
    start = len(BOM) if content[: len(BOM)] == BOM else 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        yield start, end
        start = end + 1


# --- values between commas or tabs


def _delimited_messages(
    head: dict[str, str], content: Content, columns: Sequence[str], files: RowFiles
) -> Iterator[bytes]:
    read: Callable[[Content, str], Iterator[Row]] = _csv_rows if files.form == "csv" else _text_rows
    rows = read(content, files.null)
    if files.has_header:
        first = next(rows, None)
        if first is None:
            return
        if problem := first.problem or _wrong_names(first.values):
            # Without names no row can be read: the file is one message.
            yield _problem(head, first._replace(problem=problem))
            return
        columns = [name or "" for name in first.values]
    elif not columns:
        what = "a file without names of columns: declare those of its table on the source, in their order"
        yield _problem(head, Row(1, problem=what))
        return
    for row in rows:
        if not row.problem and len(row.values) != len(columns):
            if row.values == (None,) and files.form == "csv":
                continue  # a blank line
            row = row._replace(problem=f"{_fields(len(row.values))}, and the table has {len(columns)} columns")
        yield _problem(head, row) if row.problem else _message(head, _json(dict(zip(columns, row.values))))


def _fields(number: int) -> str:
    return f"{number} value{'' if number == 1 else 's'}"


def _wrong_names(names: Values) -> str:
    if not all(names):
        return "the first line names the columns, and one has no name"
    twice = [name for name in names if names.count(name) > 1]
    return f'the first line names the column "{twice[0]}" twice' if twice else ""


# A value in quotes, in which a quote is written twice, or any other up to the next comma or the end of the line.
QUOTED = re.compile(rb'"([^"]*(?:""[^"]*)*)"(?=[,\n]|\r\n|\r?\Z)')
PLAIN = re.compile(rb"[^,\n]*")


def _csv_rows(content: Content, null: str) -> Iterator[Row]:
    """Yields the rows of values between commas. A value that stands in quotes is never null."""
    null_text = null.encode()
    data = cast("bytes", content)
    position, line = (len(BOM) if data[: len(BOM)] == BOM else 0), 1
    while position < len(data):
        start, first_line = position, line
        values: list[str | None] = []
        try:
            while True:
                found = QUOTED.match(data, position) if data[position : position + 1] == b'"' else None
                if found is None and data[position : position + 1] == b'"':
                    raise ValueError("a value in quotes does not end with a quote before a comma or the end of a line")
                if found is not None:
                    values.append(found[1].replace(b'""', b'"').decode())
                    position = found.end()
                    position += data[position : position + 2] in (b"\r\n", b"\r")
                else:
                    text = PLAIN.match(data, position)
                    assert text
                    position, plain = text.end(), text[0]
                    plain = plain.removesuffix(b"\r") if data[position : position + 1] != b"," else plain
                    values.append(None if plain == null_text else plain.decode())
                if data[position : position + 1] != b",":
                    break
                position += 1
            row = Row(first_line, tuple(values), raw=data[start:position])
        except ValueError as error:
            position = _end_of_line(data, position)
            row = Row(first_line, problem=_words(error), raw=data[start:position])
        line += data[start:position].count(b"\n") + 1
        position += 1
        yield row


def _end_of_line(data: bytes, position: int) -> int:
    end = data.find(b"\n", position)
    return len(data) if end < 0 else end


def _words(error: ValueError) -> str:
    return "bytes that are not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)


# The end of a text that says itself where it ends.
END_OF_DATA = b"\\."
ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
FIELD = re.compile(rb"(?:[^\t\\]|\\.)*", re.DOTALL)
LETTERS = {
    b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v", b"0": b"\0", b"Z": b"\x1a",
}  # fmt: skip


def _text_rows(content: Content, null: str) -> Iterator[Row]:
    r"""Yields the rows of values between tabs, in which a backslash stands before a letter for a character that cannot
    be seen (\n), or before the character itself.
    """
    null_text = null.encode()
    data = cast("bytes", content)
    position, line = (len(BOM) if data[: len(BOM)] == BOM else 0), 1
    while position < len(data):
        end = _end_of_line(data, position)
        while end < len(data) and _is_escaped(data, position, end):
            end = _end_of_line(data, end + 1)
        record = data[position:end]
        if record == END_OF_DATA:
            return
        try:
            row = Row(line, tuple(_unescaped(field, null_text) for field in _split(record)), raw=record)
        except ValueError as error:
            row = Row(line, problem=_words(error), raw=record)
        line += record.count(b"\n") + 1
        position = end + 1
        yield row


def _is_escaped(data: bytes, start: int, end: int) -> bool:
    """Returns True if an odd number of backslashes stands before a position."""
    number = 0
    while end - number > start and data[end - number - 1 : end - number] == b"\\":
        number += 1
    return number % 2 == 1


def _split(record: bytes) -> Iterator[bytes]:
    if b"\\" not in record:
        yield from record.split(b"\t")
        return
    position = 0
    while True:
        found = FIELD.match(record, position)
        assert found
        if found.end() < len(record) and record[found.end() : found.end() + 1] != b"\t":
            raise ValueError("a backslash at the end of the file")
        yield found[0]
        position = found.end() + 1
        if position > len(record):
            return


def _unescaped(field: bytes, null: bytes) -> str | None:
    if field == null:
        return None
    return (
        ESCAPED.sub(lambda found: LETTERS.get(found[1], found[1]), field).decode() if b"\\" in field else field.decode()
    )
