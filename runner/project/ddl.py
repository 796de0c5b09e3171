"""The effects of DDL statements on tables, as far as a copy of a table has to know them. Statements are read word by
word: their dialects differ in everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, NamedTuple

from sqlglot import tokens
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

# `/*!50001 ... */` is executed, and is not a comment. In a text or a name it is a part of that.
CONDITIONAL_COMMENT = re.compile(r"""('(?:[^'\\]|\\.|'')*'|"[^"]*"|`[^`]*`)|/\*M?!\d*(.*?)\*/""", re.DOTALL)
# The words that follow ADD or DROP where no column follows.
NO_COLUMNS = {
    "INDEX", "KEY", "CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "FULLTEXT", "SPATIAL", "CHECK", "PERIOD", "SYSTEM",
    "SUPPLEMENTAL", "DEFAULT", "EXPRESSION", "IDENTITY",
}  # fmt: skip
# The words that begin one action of ALTER TABLE.
ACTIONS = {
    "ADD", "ALGORITHM", "ALTER", "ANALYZE", "ATTACH", "AUTO_INCREMENT", "CHANGE", "CHARACTER", "CHARSET", "CHECK",
    "COALESCE", "COLLATE", "COMMENT", "CONVERT", "DEFAULT", "DETACH", "DISABLE", "DISCARD", "DROP", "ENABLE",
    "ENGINE", "EXCHANGE", "FORCE", "IMPORT", "INHERIT", "LOCK", "MERGE", "MODIFY", "MOVE", "OPTIMIZE", "ORDER",
    "OWNER", "PARTITION", "REBUILD", "REMOVE", "RENAME", "REORGANIZE", "REPAIR", "ROW_FORMAT", "SET", "SPLIT",
    "TRUNCATE", "VALIDATE", "WITH",
}  # fmt: skip
# What stands in place of texts in statements about tables whose values are masked.
HIDDEN = "***"
NUMBERS = re.compile(
    r"(?i)(tiny|small|medium|big)?(int|integer)\d*|serial|number|numeric|dec|decimal|float\d*|double|real|bit|bool|boolean|year"
)
TEXTS = re.compile(r"(?i)n?(var)?char2?|(tiny|medium|long)?(text|blob)|(var)?binary|set|json")


class Unreadable(Exception):
    """Raised for a statement whose effects its words do not tell."""


class Action(NamedTuple):
    """One effect of a statement. `kind` is one of `empty` (a table is truncated or dropped), `empty_database` (`name`
    is a database or schema), `rename_table` (to `to`), `add` (a column, with which rows have `default`), `drop` and
    `rename` (a column, the latter to `to[0]`), and `lost`: the effect cannot be followed, and `why` names it.
    """

    kind: str
    name: tuple[str, ...]
    column: str = ""
    to: tuple[str, ...] = ()
    default: str | None = None
    why: str = ""


@lru_cache(4096)
def actions(statement: str) -> tuple[Action, ...]:
    """Returns the actions of a text of one or more statements, in their order; raises Unreadable.

    >>> [(one.kind, one.name) for one in actions("drop table a, `b` /* both */")]
    [('empty', ('a',)), ('empty', ('b',))]
    """
    try:
        cut = Tokenizer().tokenize(CONDITIONAL_COMMENT.sub(lambda found: found[1] or f" {found[2]} ", statement))
    except SqlglotError as error:
        raise Unreadable(str(error)) from error
    out: list[Action] = []
    words: list[Token] = []
    for token in [*cut, Token(TokenType.SEMICOLON, ";")]:
        if token.token_type != TokenType.SEMICOLON:
            words.append(token)
        elif words:
            out += Words(words).statement()
            words = []
    return tuple(out)


class Tokenizer(tokens.Tokenizer):
    """Cuts texts in the dialects of all databases into words. A text in double quotes may be a name or a value."""

    IDENTIFIERS: ClassVar = ["`", '"', ("[", "]")]
    QUOTES: ClassVar = ["'"]
    STRING_ESCAPES: ClassVar = ["'", "\\"]
    COMMENTS: ClassVar = ["--", "#", ("/*", "*/")]
    BIT_STRINGS: ClassVar = [("b'", "'"), ("B'", "'")]
    KEYWORDS: ClassVar[dict[str, TokenType]] = {}
    COMMANDS: ClassVar[set[TokenType]] = set()


def _unquoted(token: Token) -> str:
    """Returns a word in capitals; an empty text for a quoted word."""
    return "" if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) else token.text.upper()


class Words:
    """The words of one statement, read from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at = tokens, 0

    # --- words

    def next(self, number: int = 0) -> str:
        """Returns the word ahead in capitals; an empty text for a quoted word, and at the end."""
        index = self.at + number
        return _unquoted(self.tokens[index]) if index < len(self.tokens) else ""

    def takes(self, *words: str) -> bool:
        """Returns True if these words are ahead, and then passes them."""
        is_ahead = all(self.next(number) == word for number, word in enumerate(words))
        self.at += len(words) if is_ahead else 0
        return is_ahead

    @property
    def is_over(self) -> bool:
        return self.at >= len(self.tokens)

    def part_of_name(self) -> str:
        if self.is_over or not (self.next() == "" or re.fullmatch(r"[\w$#@*-]+", self.tokens[self.at].text)):
            raise Unreadable("a name is missing")
        self.at += 1
        return self.tokens[self.at - 1].text

    def name(self) -> tuple[str, ...]:
        parts = [self.part_of_name()]
        while self.takes("."):
            parts.append(self.part_of_name())
        return tuple(parts)

    def names(self) -> list[tuple[str, ...]]:
        out = [self.name()]
        while self.takes(","):
            out.append(self.name())
        return out

    def group(self) -> list[Token]:
        """Returns the words in the brackets that are ahead, and passes them."""
        start, depth = self.at + 1, 0
        while not self.is_over:
            depth += {"(": 1, ")": -1}.get(self.next(), 0)
            self.at += 1
            if depth == 0:
                return self.tokens[start : self.at - 1]
        raise Unreadable("a bracket is not closed")

    def parts(self) -> Iterator[Words]:
        """Returns the words that are left, cut at commas outside brackets."""
        part: list[Token] = []
        depth = 0
        for token in self.tokens[self.at :]:
            text = _unquoted(token)
            depth += {"(": 1, ")": -1}.get(text, 0)
            if text == "," and depth == 0:
                yield Words(part)
                part = []
            else:
                part.append(token)
        yield Words(part)

    # --- statements

    def statement(self) -> Iterator[Action]:
        if self.takes("SET", "STATEMENT"):
            while not self.is_over and self.next() != "FOR":
                self.at += 1
            self.takes("FOR")
        match self.next():
            case "TRUNCATE":
                self.at += 1
                self.takes("TABLE")
                self.takes("ONLY")
                yield from (Action("empty", name) for name in self.names())
            case "DROP":
                self.at += 1
                yield from self._drop()
            case "RENAME":
                self.at += 1
                yield from self._rename()
            case "ALTER":
                while not self.is_over and self.next() in ("ALTER", "ONLINE", "OFFLINE", "IGNORE", "FOREIGN"):
                    self.at += 1
                if self.takes("TABLE"):
                    yield from self._alter()
            case "CREATE":
                self.at += 1
                if self.takes("OR", "REPLACE", "TABLE"):
                    self.takes("IF", "NOT", "EXISTS")
                    yield Action("empty", self.name())

    def _drop(self) -> Iterator[Action]:
        self.takes("FOREIGN")
        if self.takes("TABLE") or self.takes("TABLES"):
            self.takes("IF", "EXISTS")
            yield from (Action("empty", name) for name in self.names())
        elif self.takes("DATABASE") or self.takes("SCHEMA") or (self.next(2) == "CASCADE" and self.takes("USER")):
            self.takes("IF", "EXISTS")
            yield from (Action("empty_database", name) for name in self.names())

    def _rename(self) -> Iterator[Action]:
        if not (self.takes("TABLE") or self.takes("TABLES")) and self.next(1) not in ("TO", "."):
            return
        for part in self.parts():
            part.takes("IF", "EXISTS")
            name = part.name()
            while not part.is_over and not part.takes("TO"):
                part.at += 1
            yield Action("rename_table", name, to=part.name())

    def _alter(self) -> Iterator[Action]:
        self.takes("IF", "EXISTS")
        self.takes("ONLY")
        name, adds = self.name(), False
        for part in self.parts():
            if part.is_over:
                continue
            if part.next() not in ACTIONS and adds:
                yield part.added(name)
                continue
            adds = part.next() == "ADD"
            yield from part.action(name)

    def action(self, name: tuple[str, ...]) -> Iterator[Action]:
        """Returns the actions of one part of ALTER TABLE."""
        verb = self.next()
        self.at += 1
        if self.next() in ("PARTITION", "SUBPARTITION") and verb in ("DROP", "TRUNCATE", "EXCHANGE"):
            yield Action("lost", name, why=f"{verb.lower()} partition")
        elif verb == "ADD" and self.next() not in (*NO_COLUMNS, "PARTITION"):
            self.takes("COLUMN")
            self.takes("IF", "NOT", "EXISTS")
            columns = Words(self.group()).parts() if self.next() == "(" else [self]
            yield from (column.added(name) for column in columns if column.next() not in NO_COLUMNS)
        elif verb == "DROP" and self.next() not in NO_COLUMNS:
            self.takes("COLUMN")
            self.takes("IF", "EXISTS")
            columns = Words(self.group()).parts() if self.next() == "(" else [self]
            yield from (Action("drop", name, column.part_of_name()) for column in columns)
        elif verb == "CHANGE":
            self.takes("COLUMN")
            self.takes("IF", "EXISTS")
            yield from self._renamed(name, self.part_of_name())
        elif verb == "RENAME" and self.next() not in ("INDEX", "KEY", "CONSTRAINT", "PARTITION"):
            if self.takes("COLUMN") or self.next(1) == "TO":
                self.takes("IF", "EXISTS")
                column = self.part_of_name()
                self.takes("TO")
                yield from self._renamed(name, column)
            else:
                self.at += self.next() in ("TO", "AS", "=")
                to = self.name()
                yield Action("rename_table", name, to=to if len(to) > 1 else (*name[:-1], *to))
        elif verb == "SET" and self.takes("SCHEMA"):
            yield Action("rename_table", name, to=(self.part_of_name(), name[-1]))
        elif verb in ("IMPORT", "DISCARD", "EXCHANGE"):
            yield Action("lost", name, why=f"{verb.lower()} {self.next().lower()}")

    def _renamed(self, name: tuple[str, ...], column: str) -> Iterator[Action]:
        to = self.part_of_name()
        if to.lower() != column.lower():
            yield Action("rename", name, column, to=(to,))

    # --- columns

    def added(self, name: tuple[str, ...]) -> Action:
        """Returns the effect that the definition of a new column has on the rows that are there."""
        column = self.part_of_name()
        kind, definition = self.next(), self.at
        while not self.is_over:
            if self.next() in ("AS", "GENERATED", "AUTO_INCREMENT", "IDENTITY") or "SERIAL" in kind:
                return Action("lost", name, column, why=f"the column {column} has values that the database makes")
            if self.takes("DEFAULT"):
                return self._default(name, column, definition)
            if self.next() == "(":
                self.group()
            else:
                self.at += 1
        self.at = definition
        words = [self.next(number) for number in range(len(self.tokens) - definition)]
        is_not_null = ("NOT", "NULL") in pairwise(words)
        if not is_not_null:
            return Action("add", name, column)
        if kind == "ENUM" and self.next(1) == "(" and self.tokens[self.at + 2].text != HIDDEN:
            return Action("add", name, column, default=self.tokens[self.at + 2].text)
        if TEXTS.fullmatch(kind):
            return Action("add", name, column, default="")
        if NUMBERS.fullmatch(kind):
            return Action("add", name, column, default="0")
        return Action("lost", name, column, why=f"the column {column} has a default that nothing tells")

    def _default(self, name: tuple[str, ...], column: str, definition: int) -> Action:
        """Returns the action for a column whose default is a constant: all rows get this value."""
        value, rest = self._constant()
        self.at = rest
        if value is None and self.tokens[rest - 1].text.upper() != "NULL":
            return Action("lost", name, column, why=f"the default of the column {column} is an expression")
        if value == HIDDEN:
            return Action("lost", name, column, why=f"the default of the column {column} is masked")
        if value is not None and self.tokens[definition].text.upper() in ("DECIMAL", "NUMERIC", "DEC"):
            value = self._with_scale(value, definition)
        return Action("add", name, column, default=value)

    def _constant(self) -> tuple[str | None, int]:
        """Returns the constant that is ahead, None if there is none or it is null, and where it ends."""
        if self.next() == "(":
            inner = Words(self.group())
            value, rest = inner._constant()
            is_null = len(inner.tokens) == 1 and inner.tokens[0].text.upper() == "NULL"
            return (value if rest == len(inner.tokens) else None), (self.at - 1 if is_null else self.at)
        sign = "-" if self.takes("-") else ""
        self.takes("+")
        if self.is_over:
            raise Unreadable("a default is missing")
        token = self.tokens[self.at]
        self.at += 1
        if self.next() == "(":
            return None, self.at
        match token.token_type:
            case TokenType.STRING | TokenType.NATIONAL_STRING | TokenType.IDENTIFIER:
                return token.text, self.at
            case TokenType.NUMBER:
                return sign + token.text, self.at
            case TokenType.BIT_STRING:
                return str(int(token.text, 2)), self.at
        word = token.text.upper()
        return (str(int(word == "TRUE")) if word in ("TRUE", "FALSE") else None), self.at

    def _with_scale(self, value: str, definition: int) -> str:
        """Returns a decimal with as many digits behind the point as its column keeps."""
        numbers = [one.text for one in self.tokens[definition : definition + 6] if one.token_type == TokenType.NUMBER]
        scale = int(numbers[1]) if len(numbers) > 1 and numbers[1].isdigit() else 0
        whole, _, fraction = value.partition(".")
        return f"{whole}.{fraction[:scale]:0<{scale}}" if scale else whole
