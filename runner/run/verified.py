"""The tables in which `runner verify` keeps what it has found."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.engine.tables import Tables

# The tables that results are kept in, and their columns.
VERIFIED, DIFFERENCES = "verified", "verified_differences"
COLUMNS = {
    VERIFIED: {
        "mirror": "string",
        "verified_at": "timestamp",
        "verified_through": "timestamp",
        "rows": "bigint",
        "differences": "bigint",
        "open": "bigint",
        "not_compared": "array<string>",
    },
    DIFFERENCES: {
        "mirror": "string",
        "verified_at": "timestamp",
        "verified_through": "timestamp",
        "kind": "string",
        "key": "map<string,string>",
        "columns": "array<string>",
        "in_database": "map<string,string>",
        "in_mirror": "map<string,string>",
    },
}


def show_results(tables: Tables, table: str) -> None:
    """Creates a view of a table of results; without rows if nothing was verified yet."""
    if not tables.table_view(table):
        tables.spark.view(table, tables.macro("no_rows", COLUMNS[table]))
