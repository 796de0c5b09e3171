"""Calls of SQL functions whose arguments have lambdas: Spark 4.2 refuses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from runner.project.sql_functions import SqlFunction
from runner.sql_text import Token, tokens

# Functions of Spark that it makes of others with a lambda. Arguments do without them.
OF_SPARK = frozenset({"array_compact", "array_sort"})


def refused(sql: str, functions: Sequence[SqlFunction]) -> list[str]:
    """The names of those functions that SQL calls with an argument that has a lambda, or that calls a function with one
    in its body. The functions are in the order in which they must be made.

    >>> from pathlib import Path
    >>> from runner.project.sql_functions import read_functions
    >>> arguments = "(a array<int> comment 'a list') returns array<int> comment 'a list'"
    >>> text = f"create function f{arguments} return filter(a, x -> x > 1); create function g{arguments} return f(a);"
    >>> functions = read_functions(text, Path("f.sql"))
    >>> refused("select F(a), size(f(b)), `g`(array_except(a, b)), 'f(x -> x)' -- f(x -> x)", functions)
    []
    >>> refused("select f(array(size(filter(a, x -> true)))), g(if(c, g(a), b)), f(array_sort(a))", functions)
    ['f', 'g', 'f']
    """
    names, with_lambda = {one.name.lower() for one in functions}, _with_lambda(functions)
    return [name for name, inside in _calls(sql) if name in names and _has_lambda(inside, with_lambda)]


def _with_lambda(functions: Iterable[SqlFunction]) -> set[str]:
    out = set(OF_SPARK)
    for one in functions:
        if _has_lambda(list(tokens(one.text)), out):
            out.add(one.name.lower())
    return out


def _calls(sql: str) -> Iterator[tuple[str, list[Token]]]:
    """Each name before a bracket, with what stands in the brackets."""
    all_tokens = list(tokens(sql))
    for at, (token, bracket) in enumerate(pairwise(all_tokens)):
        if bracket.text == "(" and token.kind in ("word", "quoted"):
            yield _name(token), all_tokens[at + 2 : _closing(all_tokens, at + 1)]


def _closing(all_tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for at in range(opening, len(all_tokens)):
        depth += (all_tokens[at].text == "(") - (all_tokens[at].text == ")")
        if not depth:
            return at
    raise ValueError("a bracket is not closed")


def _has_lambda(inside: Sequence[Token], with_lambda: set[str]) -> bool:
    return any(
        ((one.text, two.text) == ("-", ">") and one.end == two.start) or (two.text == "(" and _name(one) in with_lambda)
        for one, two in pairwise(inside)
    )


def _name(token: Token) -> str:
    return token.text.strip("`").lower()
