"""Format -> the SQL that makes changelog rows of its messages, printed by macros."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from runner.compile.compiled import FormatQuery
from runner.compile.plan import make_plan
from runner.contract import MESSAGE_COLUMNS
from runner.project.nodes import Messages, TableSettings
from runner.spec.words import Format

Print = Callable[..., str]
"""A macro's name and arguments -> what it prints."""


def compile_format(
    macro: Print, spec: Format, source: str, zone: str | None, tables: Iterable[TableSettings] = ()
) -> FormatQuery:
    """The query that makes changelog rows of the view `<source>_messages`."""
    plan = make_plan(source, spec, zone, tables)
    sql = macro("header", plan) + macro("changelog", plan)
    return FormatQuery(sql, spec.message.encoding, (plan.avro,) if plan.avro else ())


def reads(macro: Print, messages: Messages) -> dict[str, str]:
    """The expressions that read messages: what is scanned, which rows are messages, and each column of a message."""
    columns = MESSAGE_COLUMNS["avro" if messages.kind.startswith("binary_") else "json"]
    return {part: macro(f"{messages.kind}_{part}", messages).strip() for part in ("scanned", "is_message", *columns)}
