"""Expressions that are told without the parser are expressions for the parser too."""

from __future__ import annotations

import re

import pytest
from sqlglot.dialects.dialect import Dialect

from runner.project import sql_analysis
from runner.project.sql_analysis import is_expression

FORMS = ("{} > 0", "a = {}", "x.{} > 0", "{}.x > 0", "{} is null", "a = 1 and {} = 2", "a = {} or b = 1", "a < {}.b")


def keywords() -> list[str]:
    """All words that may mean something to the parser."""
    dialect = Dialect.get_or_raise(sql_analysis.DIALECT)
    tokens, parser = dialect.tokenizer_class, dialect.parser_class
    words = {*tokens.KEYWORDS, *parser.FUNCTIONS, *parser.FUNCTION_PARSERS, *parser.NO_PAREN_FUNCTION_PARSERS}
    return sorted(word.lower() for word in words if re.fullmatch(r"[A-Za-z_]\w*", word))


def test_no_keyword_is_told_otherwise_than_by_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [form.format(word) for word in keywords() for form in FORMS]
    told = {text: is_expression(text) for text in texts}
    monkeypatch.setattr(sql_analysis, "COMPARISONS", re.compile(r"(?!)"))
    assert len(texts) > 5000
    assert [text for text in texts if told[text] != is_expression(text)] == []


def test_comparisons_need_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_analysis, "_is_parsed", lambda sql: pytest.fail(sql))
    assert is_expression("amount > 0") and is_expression(" failures > 10 and t.name is not null or b != 'x'")
