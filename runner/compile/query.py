"""Format -> the SQL that makes changelog rows of its messages, rendered from macros."""

from __future__ import annotations

from collections.abc import Iterable

from runner.compile.plan import make_plan
from runner.compile.readers import TableSettings
from runner.contract import MESSAGE_COLUMNS
from runner.project.nodes import FormatQuery, Messages
from runner.render import Renderer
from runner.spec.words import Format


def compile_format(
    renderer: Renderer, spec: Format, source: str, zone: str | None, tables: Iterable[TableSettings] = ()
) -> FormatQuery:
    """The query that makes changelog rows of the view `<source>_messages`."""
    plan = make_plan(source, spec, zone, tables)
    return FormatQuery(
        renderer.call("header", plan) + renderer.call("changelog", plan),
        spec.message.encoding,
        (plan.avro,) if plan.avro else (),
    )


def reads(renderer: Renderer, messages: Messages) -> dict[str, str]:
    """The expressions that read messages: what is scanned, which rows are messages, and each column of a message."""
    columns = MESSAGE_COLUMNS["avro" if messages.kind.startswith("binary_") else "json"]
    return {
        part: renderer.call(f"{messages.kind}_{part}", messages).strip() for part in ("scanned", "is_message", *columns)
    }
