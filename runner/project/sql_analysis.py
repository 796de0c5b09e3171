"""What the parser tells of SQL that users write: whether a text is one expression, and what a query reads. SQL is only
analysed: the runner runs it as it was written.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any

from runner.yaml_text import Yaml

DIALECT = "databricks"
# The log of the parser is turned off: a statement that it cannot parse has a result here too.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

# The words before a part of an expression -> an example of such a part.
EXAMPLES = {"": "amount > 0", "interval": "1 day", "failures": "> 10"}

# Comparisons, which most expressions are: they need no parser, and this takes as long to load as all else of `ls`.
# Names that the parser may take for something else are left to it.
WORDS = (
    "alter and any as between call case connect_by_root create cross distinct drop else except execute explain fetch "
    "for from glob grant having if ilike inner insert intersect into join lateral like match_recognize minus not "
    "notnull on optimize or outer partitioned_by prepare qualify regexp rename returning revoke rlike rollback select "
    "serdeproperties show tablesample then uncache union using vacuum values when where with xor"
)
WORD = rf"(?!(?:{WORDS.replace(' ', '|')})\b)[a-z_]\w*"
NAME = rf"{WORD}(?:\.{WORD})?"
VALUE = rf"(?:{NAME}|-?\d+(?:\.\d+)?|'[^'\\]*')"
COMPARISON = rf"{NAME} (?:is (?:not )?null|(?:=|!=|<>|[<>]=?) {VALUE})"
COMPARISONS = re.compile(rf" *{COMPARISON}(?: (?:and|or) {COMPARISON})*", re.IGNORECASE | re.ASCII)


def expression(yaml: Yaml, what: str, before: str = "") -> str:
    """Returns a text of YAML that is an expression of SQL behind the words `before`; raises `expression-syntax`."""
    check_expression(yaml, what, yaml.text(), before)
    return yaml.text()


def check_expression(at: Yaml, what: str, text: str, before: str = "") -> None:
    """Raises `expression-syntax` for a text that is not an expression of SQL behind the words `before`."""
    if not is_expression(f"{before} {text}"):
        hint = f"for instance {EXAMPLES[before]}, with all brackets, quotes and comments closed"
        raise at.error("expression-syntax", f'"{what}" is not one expression of SQL: "{text}"', hint)


def is_expression(sql: str) -> bool:
    """
    Returns True if a text is one expression of SQL, so that it can stand in brackets on lines of its own.

    >>> [is_expression(sql) for sql in ("id > 0 -- no drafts", "not a", "a in (select b from c)", "sum(a)")]
    [True, True, True, True]
    >>> [is_expression(sql) for sql in ("id >", "a) or (b", "a; drop table b", "a;", "'a", "a /* b", "a as b", "-- a")]
    [False, False, False, False, False, False, False, False]
    >>> [is_expression(sql) for sql in ("id > 1 and b is not null or c = 'it'", "id > 1 and", "id > 1 select 2")]
    [True, False, False]
    """
    return bool(COMPARISONS.fullmatch(sql)) or _is_parsed(sql)


def _is_parsed(sql: str) -> bool:
    """Returns True if the parser reads a text as one expression."""
    from sqlglot import TokenType, exp
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.errors import SqlglotError

    dialect = Dialect.get_or_raise(DIALECT)
    try:
        found = dialect.parse_into(exp.Condition, sql)
        ends = any(token.token_type == TokenType.SEMICOLON for token in dialect.tokenize(sql))
    except (SqlglotError, RecursionError):
        return False
    return len(found) == 1 and found[0] is not None and not ends


# --- the tables and columns that a query reads

# Column -> the columns that its values come from, each as (table, column), or (table, column, member) if of a map only
# the value under one key is read.
ColumnsRead = dict[str, list[tuple[str, ...]]]


def tables_read(sql: str, known: Iterable[str]) -> list[str]:
    """Returns the known tables that a query reads; if the query cannot be parsed, the tables whose names appear in it.

    >>> tables_read("with a as (select 1) select * from a join `orders` on true", ["a", "orders", "changelog"])
    ['orders']
    >>> tables_read("select * from orders where (", ["orders", "changelog"])
    ['orders']
    """
    import sqlglot
    from sqlglot import exp

    known = list(known)
    try:
        tree = sqlglot.parse_one(sql, read=DIALECT)
    except sqlglot.errors.SqlglotError:
        return [name for name in known if name in sql]
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    read = {table.name for table in tree.find_all(exp.Table) if not table.db}
    return [name for name in known if name in read - own]


# What gives other values later, or in another run, whatever the tables hold.
CHANGING = re.compile(
    r"\b(now|today|tomorrow|yesterday|current_\w+|local(time|timestamp)|curdate|unix_timestamp|rand\w*|uuid\w*|shuffle"
    r"|monotonically_increasing_id|spark_partition_id|input_file_\w+|session_user|reflect|try_reflect|java_method"
    r"|tablesample)\b",
    re.IGNORECASE,
)
QUERY = re.compile(r"\bselect\b", re.IGNORECASE)


def reads_only(sql: str, known: Iterable[str]) -> bool:
    """Returns True if a query reads no other tables than those that are known; False if it cannot be parsed.

    >>> reads_only("with a as (select * from `t`) select id from a where id in (select id from T)", ["t"])
    True
    >>> [reads_only(f"select id from {table}", ["t"]) for table in ("u", "t, parquet.`/x`", "b.t", "t where (")]
    [False, False, False, False]
    """
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(sql, read=DIALECT)
    except (sqlglot.errors.SqlglotError, RecursionError):
        return False
    names = {name.lower() for name in (*known, *(cte.alias for cte in tree.find_all(exp.CTE)))}
    read = [
        (table.db, isinstance(table.this, exp.Identifier), table.name.lower()) for table in tree.find_all(exp.Table)
    ]
    return all(not schema and is_name and name in names for schema, is_name, name in read)


def is_settled(sql: str, functions: Iterable[str]) -> bool:
    """Returns True if a query has the same rows whenever it runs, as long as the tables that it names have the same
    rows; False if its text does not tell. `functions` are the texts of the SQL functions that it calls.

    >>> is_settled("select id /* now */ from t", ["return id + 1"])
    True
    >>> is_settled("select id, now() from t", []), is_settled("select f(id) from t", ["return rand()"])
    (False, False)
    >>> is_settled("select f(id) from t", ["return (select max(id) from u)"]), is_settled("select (", [])
    (False, False)
    """
    import sqlglot

    try:
        query = sqlglot.parse_one(sql, read=DIALECT).sql(dialect=DIALECT, comments=False)
    except (sqlglot.errors.SqlglotError, RecursionError):
        return False
    texts = list(functions)
    return not any(map(CHANGING.search, (query, *texts))) and not any(map(QUERY.search, texts))


def columns_read(sql: str, tables: Mapping[str, Iterable[str]]) -> ColumnsRead | None:
    """Returns the columns of a query and the columns that their values come from; None if the text of the query does
    not tell. `tables` are the columns of the tables that it reads, as far as they are known.

    >>> columns_read("select *, a + b as c, 1 as d from (select a, b from t)", {"t": ["a", "b"]})
    {'a': [('t', 'a')], 'b': [('t', 'b')], 'c': [('t', 'a'), ('t', 'b')], 'd': []}
    >>> columns_read("select int(after['id']) as id from (select m as after from t)", {"t": ["m"]})
    {'id': [('t', 'm', 'id')]}
    >>> columns_read("select * from t", {}), columns_read("select ((", {})
    (None, None)
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.lineage import lineage
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.optimizer.scope import build_scope

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


def _leaves(root: Any) -> list[tuple[str, ...]]:
    """Returns the columns of tables where a lineage ends, each once, with the member of them that is read."""
    from sqlglot import exp

    found, seen = set[tuple[str, ...]](), set[tuple[int, tuple[str, ...]]]()
    waiting: list[tuple[Any, tuple[str, ...]]] = [(root, ())]
    while waiting:
        node, member = waiting.pop()
        # Many ways may lead to a column of a query that another reads.
        if (id(node), member) in seen:
            continue
        seen.add((id(node), member))
        if not node.downstream and isinstance(node.source, exp.Table):
            found.add((node.source.name, exp.to_column(node.name).name, *member))
        for below in node.downstream:
            waiting += [(below, one) for one in _members(node.expression, below.name, member)]
    return sorted(found)


def _members(expression: Any, name: str, member: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Returns the members that an expression reads of a column of this name, of which one may be empty: the column as a
    whole. A column that is only handed on is read as its reader reads it: one `member`.
    """
    from sqlglot import exp

    column = exp.to_column(name).name
    read = [one for one in expression.find_all(exp.Column) if one.name == column]
    if not read or expression.unalias() in read:
        return {member}
    of_maps = [one.parent for one in read if isinstance(one.parent, exp.Bracket) and one.arg_key == "this"]
    keys = [key for one in of_maps for key in one.expressions if isinstance(key, exp.Literal) and key.is_string]
    return {(key.name,) for key in keys} if len(keys) == len(read) else {()}
