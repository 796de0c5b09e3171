"""The tables and columns that a query reads. SQL is only analysed: the runner runs SQL as it was written."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import sqlglot
from sqlglot import exp
from sqlglot.lineage import lineage
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import build_scope

DIALECT = "databricks"
# The log of sqlglot is turned off: a statement that it cannot parse has a result here too.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

# Column -> the columns that its values come from, each as (table, column).
ColumnsRead = dict[str, list[tuple[str, str]]]


def tables_read(sql: str, known: Iterable[str]) -> list[str]:
    """Returns the known tables that a query reads; if the query cannot be parsed, the tables whose names appear in it.

    >>> tables_read("with a as (select 1) select * from a join `orders` on true", ["a", "orders", "changelog"])
    ['orders']
    >>> tables_read("select * from orders where (", ["orders", "changelog"])
    ['orders']
    """
    known = list(known)
    try:
        tree = sqlglot.parse_one(sql, read=DIALECT)
    except sqlglot.errors.SqlglotError:
        return [name for name in known if name in sql]
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    read = {table.name for table in tree.find_all(exp.Table) if not table.db}
    return [name for name in known if name in read - own]


def columns_read(sql: str, tables: Mapping[str, Iterable[str]]) -> ColumnsRead | None:
    """Returns the columns of a query and the columns that their values come from; None if the text of the query does
    not tell. `tables` are the columns of the tables that it reads, as far as they are known.

    >>> columns_read("select *, a + b as c, 1 as d from (select a, b from t)", {"t": ["a", "b"]})
    {'a': [('t', 'a')], 'b': [('t', 'b')], 'c': [('t', 'a'), ('t', 'b')], 'd': []}
    >>> columns_read("select * from t", {}), columns_read("select ((", {})
    (None, None)
    """
    schema: dict[str, object] = {table: dict.fromkeys(columns, "string") for table, columns in tables.items()}
    try:
        tree = qualify(
            sqlglot.parse_one(sql, read=DIALECT), dialect=DIALECT, schema=schema, validate_qualify_columns=False
        )
        scope = build_scope(tree)
        if scope is None or not isinstance(tree, exp.Query) or tree.is_star:
            return None
        return {
            name: _leaves(lineage(name, tree, schema, scope=scope, dialect=DIALECT, trim_selects=False, copy=False))
            for name in tree.named_selects
        }
    except (sqlglot.errors.SqlglotError, ValueError, KeyError, AttributeError, RecursionError):
        return None  # SQL that it does not know; what runs is decided by Spark alone


def _leaves(root: object) -> list[tuple[str, str]]:
    """Returns the columns of tables where a lineage ends, each once."""
    ends = (node for node in root.walk() if not node.downstream)  # type: ignore[attr-defined]
    found = ((node.source.name, exp.to_column(node.name).name) for node in ends if isinstance(node.source, exp.Table))
    return sorted(set(found))
