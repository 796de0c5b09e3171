"""The reader of documents in the language of MongoDB's shell, `{_id: ObjectId("..."), n: NumberLong(5)}`: columns and
types.

Values at the top level become canonical text. Nested values become compact JSON, with constructors in extended JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from runner.functions.mongo_values import (
    ARGUMENTS,
    CONSTRUCTORS,
    KINDS,
    WORDS,
    Value,
    exponents_written_out,
    quote,
    value_of_word,
)

MAX_DEPTH = 150
NOT_A_DOCUMENT, UNKNOWN_PATCH = "row-not-an-object", "unknown-patch"

BLANKS = re.compile(r"[ \t\r\n]+")
DOUBLE_QUOTED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
ESCAPED_OR_QUOTE = re.compile(r"\\(.)|(\")", re.DOTALL)
SINGLE_QUOTED = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'", re.DOTALL)
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![0-9A-Za-z_.$])")
INFINITE = re.compile(r"(?:NaN|-?Infinity)(?![0-9A-Za-z_$])")
WORD = re.compile(r"[A-Za-z_$][0-9A-Za-z_$]*")
NEW = re.compile(r"new[ \t\r\n]+(?=[A-Za-z_$])")
PATTERN = re.compile(r"/((?:[^/\\\n]|\\.)+)/([a-z]*)")


class NotADocument(ValueError):
    """Raised for a text that is not a document."""


class ShellDocument(NamedTuple):
    """The result of reading a document: texts and types of columns, the columns whose value did not fit its type and
    stayed as sent, and the columns that a patch removes. `reason` says why the others are None.
    """

    values: dict[str, str | None] | None
    types: dict[str, str] | None
    as_sent: list[str] | None
    removed: list[str] | None
    reason: str | None


NOTHING = ShellDocument(None, None, None, None, None)


def shell_document(text: str | None) -> ShellDocument:
    """Returns the members of a document at its top level; of equal names the last counts.

    >>> shell_document('{"_id": ObjectId("64650cf67dc36a464e76e583"), "tags": ["a", 1.50]}').values
    {'_id': '64650cf67dc36a464e76e583', 'tags': '["a",1.50]'}
    >>> shell_document("[1]").reason
    'row-not-an-object'
    """
    if text is None:
        return NOTHING
    try:
        reader = Reader(text)
        members = reader.members(0)
        reader.end()
    except NotADocument:
        return NOTHING._replace(reason=NOT_A_DOCUMENT)
    return document_of(members, None)


def shell_patch(text: str | None) -> ShellDocument:
    """Returns the columns that an update by operators sets and removes. Operators other than $set and $unset, and
    members that are not operators, give the reason `unknown-patch`; the number of the patch's version, `$v`, does not.

    >>> shell_patch('{"$unset": {"a": true}, "$set": {"b": 1}}')[:4]
    ({'b': '1'}, {'b': 'int'}, [], ['a'])
    >>> shell_patch('{"$v": 1, "$set": {"b": 1}}').values, shell_patch('{"$inc": {"a": 1}}').reason
    ({'b': '1'}, 'unknown-patch')
    """
    if text is None:
        return NOTHING
    try:
        reader = Reader(text)
        operators = reader.operators()
        reader.end()
    except NotADocument:
        return NOTHING._replace(reason=NOT_A_DOCUMENT)
    if operators.get("$v", {}) is None and len(operators) > 1:
        del operators["$v"]
    if any(name not in ("$set", "$unset") or members is None for name, members in operators.items()):
        return NOTHING._replace(reason=UNKNOWN_PATCH)
    return document_of(operators.get("$set") or {}, list(operators.get("$unset") or {}))


def document_of(members: dict[str, Value], removed: list[str] | None) -> ShellDocument:
    """Returns the columns of these members; exponents of decimals and whole numbers are written out."""
    written = exponents_written_out(members)
    return ShellDocument(
        values={name: written.get(name, v.text) for name, v in members.items()},
        types={name: v.kind for name, v in members.items()},
        as_sent=[name for name, v in members.items() if not v.fits or (v.has_exponent and name not in written)],
        removed=removed,
        reason=None,
    )


class Reader:
    """Reads a text in one pass."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0

    # --- tokens

    def skip_blanks(self) -> None:
        blanks = BLANKS.match(self.text, self.position)
        if blanks:
            self.position = blanks.end()

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Returns the match of a pattern at the position, after blanks, and moves the position behind the match."""
        self.skip_blanks()
        found = pattern.match(self.text, self.position)
        if found:
            self.position = found.end()
        return found

    def sees(self, sign: str) -> bool:
        """Returns True if a sign stands at the position, after blanks, and then moves the position behind the sign."""
        self.skip_blanks()
        if not self.text.startswith(sign, self.position):
            return False
        self.position += len(sign)
        return True

    def need(self, sign: str) -> None:
        if not self.sees(sign):
            raise NotADocument

    def end(self) -> None:
        self.skip_blanks()
        if self.position != len(self.text):
            raise NotADocument

    def quoted(self) -> str | None:
        found = self.match(DOUBLE_QUOTED) or self.match(SINGLE_QUOTED)
        return unquoted(found[0]) if found else None

    # --- documents

    def names(self, depth: int) -> Iterator[str]:
        """Returns the names of an object's members. After each, the caller must read the value that follows."""
        if depth > MAX_DEPTH:
            raise NotADocument
        self.need("{")
        if self.sees("}"):
            return
        while True:
            name = self.quoted()
            if name is None:
                word = self.match(WORD)
                if not word:
                    raise NotADocument
                name = word[0]
            self.need(":")
            yield name
            if self.sees("}"):
                return
            self.need(",")

    def members(self, depth: int) -> dict[str, Value]:
        out: dict[str, Value] = {}
        for name in self.names(depth):
            out.pop(name, None)
            out[name] = self.value(depth + 1)
        return out

    def operators(self) -> dict[str, dict[str, Value] | None]:
        """Returns the operators of an update, each with the members of its object; None for one without an object."""
        out: dict[str, dict[str, Value] | None] = {}
        for name in self.names(0):
            out.pop(name, None)
            start = self.position
            try:
                out[name] = self.members(1)
            except NotADocument:
                self.position = start
                self.value(1)
                out[name] = None
        return out

    # --- values

    def value(self, depth: int) -> Value:
        if depth > MAX_DEPTH:
            raise NotADocument
        self.skip_blanks()
        sign = self.text[self.position : self.position + 1]
        if sign == "{":
            text = "{" + ",".join(f"{quote(name)}:{v.json}" for name, v in self.members(depth).items()) + "}"
            return Value("object", text, text)
        if sign == "[":
            text = "[" + ",".join(v.json for v in self.elements("[", "]", depth)) + "]"
            return Value("array", text, text)
        if sign in ('"', "'"):
            string = self.quoted()
            if string is None:
                raise NotADocument
            return Value("string", string, quote(string))
        return self.scalar(depth)

    def elements(self, opening: str, closing: str, depth: int) -> list[Value]:
        self.need(opening)
        out: list[Value] = []
        if self.sees(closing):
            return out
        while True:
            out.append(self.value(depth + 1))
            if self.sees(closing):
                return out
            self.need(",")

    def scalar(self, depth: int) -> Value:
        number = self.match(NUMBER)
        if number:
            return Value("double" if number[1] or number[2] else "int", number[0], number[0])
        infinite = self.match(INFINITE)
        if infinite:
            return Value("double", infinite[0], f'{{"$numberDouble":"{infinite[0]}"}}')
        pattern = self.match(PATTERN)
        if pattern:
            return Value(
                "regex",
                pattern[0],
                f'{{"$regularExpression":{{"pattern":{quote(pattern[1])},"options":"{pattern[2]}"}}}}',
            )
        return self.word(depth)

    def word(self, depth: int) -> Value:
        """Returns a word that is a value, or a constructor with its arguments in brackets."""
        start = self.position
        new = self.match(NEW)
        word = self.match(WORD)
        if not word:
            raise NotADocument
        name, end = word[0], self.position
        if not self.sees("("):
            self.position = end
            if new or name not in WORDS:
                raise NotADocument
            return value_of_word(name)
        self.position = end
        arguments = self.elements("(", ")", depth)
        if name in ("MinKey", "MaxKey") and not arguments:
            return value_of_word(name)
        made = CONSTRUCTORS[name](*arguments) if name in CONSTRUCTORS and len(arguments) == ARGUMENTS[name] else None
        text = self.text[start : self.position]
        return made or Value(KINDS.get(name, name), text, quote(text), fits=name not in CONSTRUCTORS)


def unquoted(token: str) -> str:
    """Returns the text of a token in quotes; half a surrogate pair becomes U+FFFD."""
    if token[0] == "'":
        token = '"' + ESCAPED_OR_QUOTE.sub(_in_double_quotes, token[1:-1]) + '"'
    if "\\" not in token:
        return token[1:-1]
    try:
        text: str = json.loads(token, strict=False)
    except ValueError:
        raise NotADocument from None
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _in_double_quotes(found: re.Match[str]) -> str:
    """Returns an escaped character or a double quote of a text in single quotes, as it is written in double quotes."""
    return "'" if found[1] == "'" else '\\"' if found[2] else found[0]
