"""Notes on the types that a run has landed and no table of types has."""

from __future__ import annotations

from datetime import date

from runner.compile.unknown_types import has_tables_of_types, notes_on, unknown_types
from runner.engine.tables import Tables
from runner.project.inputs import Source


def notes_on_landed(tables: Tables, source: Source, run_id: str, since: date) -> tuple[str, ...]:
    """The notes on the rows that a run has landed since a day."""
    if not has_tables_of_types(source.format):
        return ()
    _, rows = tables.spark.rows(tables.macro("types_landed", source.model, run_id, since.isoformat()))
    return notes_on(unknown_types(source.format, rows, source.tables))
