"""The tables that a query reads. Only this file imports sqlglot, to analyse SQL: it never changes the SQL that runs."""

from __future__ import annotations

from collections.abc import Iterable

import sqlglot
from sqlglot import exp


def tables_read(sql: str, known: Iterable[str]) -> list[str]:
    """The known tables that a query reads; if it cannot be parsed, those whose names appear in it.

    >>> tables_read("with a as (select 1) select * from a join `orders` on true", ["a", "orders", "changelog"])
    ['orders']
    >>> tables_read("select * from orders where (", ["orders", "changelog"])
    ['orders']
    """
    known = list(known)
    try:
        tree = sqlglot.parse_one(sql, read="databricks")
    except sqlglot.errors.SqlglotError:
        return [name for name in known if name in sql]
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    read = {table.name for table in tree.find_all(exp.Table) if not table.db}
    return [name for name in known if name in read - own]
