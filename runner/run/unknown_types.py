"""Notes on the types that a run has landed and no table of types has."""

from __future__ import annotations

from datetime import date

from runner.compile.unknown_types import has_tables_of_types, notes_on, unknown_types
from runner.engine.tables import Tables
from runner.project.inputs import Source

# Of so few rows all types are read: to find those that are alike would take Spark longer.
FEW_ROWS = 1_000


def notes_on_landed(tables: Tables, source: Source, landed: int, run_id: str, since: date) -> tuple[str, ...]:
    """The notes on the rows that a run has landed since a day, so many of them."""
    if not landed or not has_tables_of_types(source.format):
        return ()
    are_few = landed <= FEW_ROWS
    _, rows = tables.spark.rows(tables.macro("types_landed", source.model, run_id, since.isoformat(), are_few))
    return notes_on(unknown_types(source.format, rows, source.tables))
