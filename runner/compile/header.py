"""The header of a message, which is all that stands beside its rows: SQL of the message's verdict, of plain columns and
of order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from runner.compile.compiled import Print
from runner.compile.images import grouped
from runner.compile.paths import TEXT
from runner.compile.readers import Zone
from runner.render import sql_text
from runner.spec.vocabulary import TIME_COLUMNS
from runner.spec.words import Condition, Field, Format, Line, Switch, Value, fields_of

# The columns that together name a table, from the outside in.
NAME_COLUMNS = ("tenant", "db_name", "schema_name", "table_name")
# Reader of a time -> the SQL function that reads it.
INSTANTS = {
    "epoch_s": "instant_of_seconds",
    "epoch_us": "instant_of_microseconds",
    "epoch_ns": "instant_of_nanoseconds",
    "zoned": "instant_with_offset",
}
# Reader of an order number -> the SQL function that reads it.
ORDER_NUMBERS = {"lsn": "number_of_lsn", "second": "second_of_number", "within_second": "number_within_second"}
# Test of a condition -> the macro that prints it.
CONDITIONS = {"is": "is_one_of", "is_not": "is_none_of", "has": "is_there", "lacks": "is_missing", "holds": "holds"}


class Header:
    """Prints the SQL that reads the header of a format's messages. The column `m` has the fields of a message."""

    def __init__(self, sql: Print, spec: Format, zone: Zone | None) -> None:
        self.sql, self.spec, self.zone, self.lines = sql, spec, zone, spec.op.lines()

    # --- values

    def field(self, path: Iterable[str]) -> str:
        return self.sql("at_path", "m", tuple(path))

    def first(self, expressions: Iterable[str]) -> str:
        """Prints the first of some expressions that is not null."""
        found = list(expressions)
        return found[0] if len(found) == 1 else self.sql("first_of", found)

    def first_field(self, paths: Iterable[Iterable[str]]) -> str:
        return self.first(map(self.field, paths))

    def plain(self, value: Value) -> str:
        """Prints the first place of a value that is not null."""
        return self.first(map(self._choice, value)) if value else self.sql("null_of", TEXT)

    def given(self, value: Value) -> str:
        """Prints the first place of a value that holds a text; an empty text does not count."""
        return self.first(map(self._given, value)) if value else self.sql("null_of", TEXT)

    def _given(self, choice: Field | Switch[Value]) -> str:
        return self.plain((choice,)) if isinstance(choice, Switch) else self.sql("if_not", self._text(choice), "")

    def _choice(self, choice: Field | Switch[Value]) -> str:
        if isinstance(choice, Switch):
            return self._switch(choice, self.given)
        return self.sql("if_not", self._text(choice), "") if choice.pattern else self._text(choice)

    def _text(self, field: Field) -> str:
        """Prints the text in a field, or the part of the text that the field's pattern takes."""
        whole = self._if_known(self.field(field.path), field.unknown)
        found = self.sql("text_behind", whole, self.field(field.behind)) if field.behind else whole
        if field.pattern:
            part = self.sql("part_of_text", found, field.pattern)
            found = self.sql("part_or_whole", found, field.pattern, part, whole) if field.may_lack_it else part
        return self.sql("with_dots", found, field.dot) if field.dot else found

    def _if_known(self, sent: str, unknown: Sequence[str]) -> str:
        if not unknown:
            return sent
        return (
            self.sql("if_not", sent, unknown[0]) if len(unknown) == 1 else self.sql("if_none_of", sent, unknown, sent)
        )

    def _switch(self, switch: Switch[Value], printed: Callable[[Value], str]) -> str:
        """Prints a value chosen by the text of another, in any case of letters."""
        by = self.sql("called", "lower", [self.plain(switch.by)])
        cases = [(self.fits(by, texts), printed(value)) for texts, value in switch.groups()]
        if switch.missing and switch.missing != switch.otherwise:
            cases.append((self.sql("is_missing", by), printed(switch.missing)))
        return self.sql("choice", cases, printed(switch.otherwise))

    def fits(self, expression: str, texts: Iterable[str]) -> str:
        """Prints the test that a text in lower case is one of some texts. A text with a * at its end stands for all
        texts that begin like it.
        """
        return self._fits(expression, [text.lower() for text in texts])

    def _fits(self, expression: str, texts: Sequence[str]) -> str:
        exact = [text for text in texts if not text.endswith("*")]
        tests = [self.sql("is_one_of", expression, exact)] if exact else []
        tests += [self.sql("begins_with", expression, text[:-1]) for text in texts if text.endswith("*")]
        return self.sql("any_of", tests)

    def column(self, name: str) -> str:
        """Prints a plain column of the contract; for some verdicts it has a value of their own."""
        printed = self.time if name in TIME_COLUMNS else self.given
        value = printed(self.spec.columns.get(name, ()))
        own = ((line.columns[name], line.verdict) for line in self.lines if name in line.columns)
        cases = [(verdicts, printed(of_line)) for of_line, verdicts in grouped(own)]
        return self.sql("by_verdict", cases, value) if cases else value

    def table_names(self) -> str:
        """Prints the names of the table that a message is about, from the outside in."""
        names = [self.given(self.spec.columns.get(name, ())) for name in NAME_COLUMNS]
        return self.sql("called", "array_compact", [self.sql("array_of", names)])

    def pair_id(self) -> str:
        """Prints the text that two halves of an update share."""
        halves = list(dict.fromkeys(line.verdict for line in self.lines if line.kind == "row" and line.half))
        return self.sql("of_verdicts", halves, self.column("pair_id")) if halves else self.sql("null_of", TEXT)

    # --- times and order numbers

    @property
    def has_local_times(self) -> bool:
        """True if a time or an order number of the header is a local time."""
        values = [*self.spec.columns.values(), *self.spec.seq, *_own_values(self.lines)]
        return any(field.reader == "local" for value in values for field in fields_of(value))

    def ambiguous_columns(self) -> list[str]:
        """Returns the times that come only from local times, of a zone whose clocks may show a time twice."""
        if not self.zone or not self.zone.may_skip:
            return []
        return [name for name in TIME_COLUMNS if self._readers(name) == {"local"}]

    def _readers(self, column: str) -> set[str]:
        own = [line.columns[column] for line in self.lines if column in line.columns]
        return {field.reader for value in (self.spec.columns.get(column, ()), *own) for field in fields_of(value)}

    def time(self, value: Value) -> str:
        """Prints an instant up to the year 9999; null if no field holds one."""
        return self.first(map(self._time, value)) if value else self.sql("null_of", "timestamp")

    def _time(self, choice: Field | Switch[Value]) -> str:
        if isinstance(choice, Switch):
            return self._switch(choice, self.time)
        sent = self.field(choice.path)
        instant = self._instant(choice.reader, self.sql("shifted", sent, choice.shift) if choice.shift else sent)
        # The test is outside of the function: fields are cheap arguments, expressions are computed for every row.
        return self.sql("if_none_of", sent, choice.unknown, instant) if choice.unknown else instant

    def _instant(self, reader: str, sent: str) -> str:
        if reader == "local":
            return self.sql("called", self.zone.function, [sent]) if self.zone else self.sql("null_of", "timestamp")
        return self.sql("called", INSTANTS.get(reader, "instant_of_milliseconds"), [sent])

    def position(self) -> str:
        """Prints the order numbers up to the first that is not known. Loaded rows may have no number that compares with
        those of changes.
        """
        numbers = [self._order_text(value, index) for value in self.spec.seq for index in range(_count(value))]
        if not numbers:
            return self.sql("no_position")
        position = self.sql("called", "order_position", [self.sql("array_of", numbers)])
        return self.sql("unless_loaded", position) if self.spec.loads == "unnumbered" else position

    def _order_text(self, value: Value, index: int) -> str:
        return self.first(self._order(choice, index) for choice in value) if value else self.sql("null_of", TEXT)

    def _order(self, choice: Field | Switch[Value], index: int) -> str:
        if isinstance(choice, Switch):
            return self._switch(choice, partial(self._order_text, index=index))
        sent, reader = self._choice(choice), choice.reader
        if index >= choice.count or (reader == "local" and not self.zone):
            return self.sql("null_of", TEXT)
        if reader == "last_numbers":
            return self.sql("last_number_in", sent, choice.count, index)
        if choice.count > 1:
            return self.sql("number_in_list", sent, index)
        if reader == "numbers":
            return self.sql("number_in", sent, index)
        if reader in ORDER_NUMBERS:
            return self.sql("called", ORDER_NUMBERS[reader], [sent])
        return sent if reader == "text" else self.sql("second_of", self._time(choice))

    # --- what a message is

    def verdict(self) -> str:
        """Prints the verdict of a message: that of the first line that fits the message."""
        op = self.spec.op
        first = [self._case(line, "raw is null") for line in op.empty] + [self._case(line) for line in op.first]
        if op.is_switch:
            cases = [(sql_text(text), sql_text(line.verdict)) for texts, line in op.groups() for text in texts]
            parts = [self.sql("cases", first), self.sql("simple_cases", self.plain(op.by), cases)]
            last = self._last_cases()
            return self.sql("first_of_cases", [*parts, *([self.sql("cases", last)] if last else [])])
        between = [self._case(line, self._fits(self.plain(op.by), texts)) for texts, line in op.groups()]
        return self.sql("cases", [*first, *between, *self._last_cases()])

    def _last_cases(self) -> list[tuple[str, str]]:
        """Prints the cases for messages that fit no other case."""
        op = self.spec.op
        if op.misses_as_others:
            return [self._case(line) for line in op.otherwise]
        by = self.plain(op.by)
        missing = [self._case(line, self.sql("is_missing", by)) for line in op.missing]
        return missing + [self._case(line, self.sql("is_there", by)) for line in op.otherwise]

    def _case(self, line: Line, test: str = "") -> tuple[str, str]:
        """Prints the tests that a message of a line passes, and the verdict of the line."""
        tests = [*([test] if test else []), *map(self._condition, line.conditions)]
        return self.sql("all_of", tests or ["true"]), sql_text(line.verdict)

    def _condition(self, condition: Condition) -> str:
        return self.sql(CONDITIONS[condition.test], self.field(condition.path), condition.texts)

    def conditions(self, conditions: Iterable[Condition]) -> str:
        return self.sql("all_of", list(map(self._condition, conditions)))

    def op(self) -> str:
        """Prints the op of a row. An empty statement has the op of no statement, so that a field can be an argument as
        it is.
        """
        value = self.spec.columns.get("statement", ())
        is_plain = len(value) < 2 and not any("statement" in line.columns for line in self.lines)
        by_statement = self.sql(
            "called", "op_of_statement", [self.plain(value) if is_plain else self.column("statement")]
        )
        cases = [
            (self.sql("is_one_of", "verdict", [verdict]), self._ddl_op(ddl, by_statement))
            for verdict, ddl in {line.verdict: line.ddl for line in self.lines if line.ddl}.items()
        ]
        if any(line.op is None and not line.ddl for line in self.lines):
            cases.append((self.sql("is_by_statement"), by_statement))
        usable = (self.sql("is_missing", "reason"), self.sql("second_word", "verdict"))
        return self.sql("cases", [*cases, usable])

    def _ddl_op(self, ddl: Switch[str | None], by_statement: str) -> str:
        by = self.sql("called", "lower", [self.plain(ddl.by)])
        cases = [(self.fits(by, texts), sql_text(op) if op else by_statement) for texts, op in ddl.groups()]
        return self.sql("choice", cases, sql_text(ddl.otherwise) if ddl.otherwise else by_statement)

    # --- why a message is refused

    @property
    def refusing(self) -> list[Line]:
        """The lines that refuse messages."""
        return [line for line in self.lines if line.kind == "dead_letter"]

    def detail(self) -> str:
        """Prints the details of a message that is refused, for each reason."""
        by = self.spec.op.by
        op_name = " or ".join(".".join(field.path) for field in fields_of(by))
        statement = self.plain(self.spec.columns.get("statement", ()))
        found = self.sql("called", "found_in_message", ["reason", sql_text(op_name), self.plain(by), statement])
        fields = [
            (sql_text(line.op or ""), [(".".join(path), self.field(path)) for path in line.detail_paths])
            for line in self.refusing
        ]
        return self.sql("detail_of_lines", fields, found) if fields else found


def _count(value: Value) -> int:
    """Returns the number of order numbers that a value gives."""
    return max(field.count for field in fields_of(value))


def _own_values(lines: Iterable[Line]) -> Iterator[Value]:
    return (value for line in lines for value in line.columns.values())
