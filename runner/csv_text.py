"""Files of comma-separated values -> rows of texts, and the types that these texts have."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from runner.errors import RunnerError, Where
from runner.files import read_text

Value = str | None

WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,18})(?:\.([0-9]{1,18}))?")
INSTANT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::[0-5]\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?")
LARGEST = 2**63


@dataclass(frozen=True)
class Csv:
    """The rows of a file, each with a value for each column, and the numbers of the `lines` in which they end."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    lines: tuple[int, ...] = ()


def read_csv(path: Path, delimiter: str = ",") -> Csv:
    """Returns the rows of a file; raises `csv-columns` and `csv-line`."""
    return csv_of(read_text(path), path, delimiter)


def csv_of(text: str, path: Path, delimiter: str = ",") -> Csv:
    """Returns the rows of a text whose first line names the columns. A value may stand in double quotes, and within it
    a quote is written twice. A value that is empty, or is the word null, is None. Raises `csv-columns` and `csv-line`.
    """
    # Line ends within quotes stay as they are.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[tuple[Value, ...]] = []
    lines: list[int] = []
    columns: tuple[str, ...] = ()
    try:
        columns = tuple(name.strip() for name in next(reader, []))
        _check_columns(path, columns)
        for row in reader:
            if row and len(row) != len(columns):
                message = f"the line has {len(row)} values, and the file {len(columns)} columns"
                raise RunnerError("csv-line", message, Where(path, reader.line_num), _quoting(delimiter))
            if row:
                rows.append(tuple(None if value == "" or value.lower() == "null" else value for value in row))
                lines.append(reader.line_num)
    except csv.Error as error:
        raise RunnerError("csv-line", str(error), Where(path, reader.line_num), _quoting(delimiter)) from None
    return Csv(columns, tuple(rows), tuple(lines))


def _check_columns(path: Path, columns: tuple[str, ...]) -> None:
    hint = "the first line names the columns"
    if not columns or not all(columns):
        raise RunnerError("csv-columns", "a column has no name", Where(path, 1), hint)
    lower = [name.lower() for name in columns]
    for name in columns:
        if lower.count(name.lower()) > 1:
            raise RunnerError("csv-columns", f'two columns have the name "{name}"', Where(path, 1), hint)


def _quoting(delimiter: str) -> str:
    return f'values are separated by "{delimiter}"; one that contains it stands in double quotes, doubled within it'


def type_of(values: Iterable[Value]) -> str:
    """Returns the type in SQL that fits all values. A number with leading zeros is a text: as a number it would lose
    them.

    >>> type_of(["1", None, "-20"]), type_of(["1", "2.50"]), type_of(["007", "1"]), type_of([None])
    ('bigint', 'decimal(38,2)', 'string', 'string')
    >>> type_of(["true", "False"]), type_of(["2024-02-29"]), type_of(["2024-02-29 10:00"]), type_of(["2024-02-30"])
    ('boolean', 'date', 'timestamp', 'string')
    """
    texts = [value for value in values if value is not None]
    if not texts:
        return "string"
    if all(WHOLE.fullmatch(text) and -LARGEST <= int(text) < LARGEST for text in texts):
        return "bigint"
    if all(decimals := [DECIMAL.fullmatch(text) for text in texts]):
        return f"decimal(38,{max(len(found[1] or '') for found in decimals if found)})"
    if all(text.lower() in ("true", "false") for text in texts):
        return "boolean"
    if all(_is_date(text) for text in texts):
        return "date"
    return "timestamp" if all(_is_instant(text) for text in texts) else "string"


def _is_date(text: str) -> bool:
    with suppress(ValueError):
        return len(text) == 10 and date.fromisoformat(text) is not None
    return False


def _is_instant(text: str) -> bool:
    with suppress(ValueError):
        # The pattern checks what follows the minutes: Python before 3.11 does not read all of it.
        return bool(INSTANT.fullmatch(text)) and datetime.fromisoformat(text[:16]) is not None
    return False
