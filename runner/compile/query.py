"""Format -> the SQL that makes changelog rows of its messages, printed by macros."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runner.compile.compiled import FormatQuery
from runner.compile.plan import make_plan
from runner.compile.promises import make_promises
from runner.contract import MESSAGE_COLUMNS
from runner.project.inputs import Messages, TableSettings
from runner.project.sql_functions import printed_functions
from runner.spec.words import Format
from runner.sql_layout import folded

Print = Callable[..., str]
"""A macro's name and arguments -> what it prints."""


def compile_format(
    macro: Print,
    spec: Format,
    source: str,
    zone: str | None,
    tables: Sequence[TableSettings] = (),
    prefix: str | None = None,
    generation: int = 0,
) -> FormatQuery:
    """The query that makes changelog rows of the view `<source>_messages`, and the functions that only it calls; their
    names begin with the `prefix`, which is the source if it is not given.
    """
    plan = make_plan(source, spec, zone, tables, prefix, generation)
    sql = folded(macro("header", plan) + macro("changelog", plan))
    functions = printed_functions(folded(macro("functions_of_source", plan)), "functions_of_source")
    promises = make_promises(spec, zone, tables)
    return FormatQuery(sql, spec.message.encoding, (plan.avro,) if plan.avro else (), functions, promises)


def reads(macro: Print, messages: Messages) -> dict[str, str]:
    """The expressions that read messages: what is scanned, which rows are messages, and each column of a message."""
    columns = MESSAGE_COLUMNS["avro" if messages.kind.startswith("binary_") else "json"]
    return {part: macro(f"{messages.kind}_{part}", messages).strip() for part in ("scanned", "is_message", *columns)}
