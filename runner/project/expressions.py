"""The check of SQL that users write as a part of a query that the runner makes: it has to be one expression."""

from __future__ import annotations

import re

from runner.yaml_text import Yaml

DIALECT = "databricks"


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
