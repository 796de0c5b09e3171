"""Reads YAML files as texts, each with its place: no scalar is taken for a number, a date or a boolean. Reading keeps
within bounds: a file that is small stays small when it is read.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from runner.errors import Problems, RunnerError, Where, nearest_or_all
from runner.files import read_text

Steps = tuple["str | int", ...]

# The most bytes of a file; the most collections inside each other; the most characters that aliases repeat, where each
# value counts for some more.
LARGEST = 64_000_000
DEEPEST = 100
MOST_REPEATED = 10_000_000
VALUE = 10
# A place is one number: its line times this, plus its column.
LINE = 2**32
# Texts that mean something else if they are written without quotes.
NULLS = ("", "~", "null")
MERGE_KEY = "<<"
PLAIN = frozenset({*NULLS, MERGE_KEY})

LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
WORDS = {"true": True, "false": False}


@dataclass(frozen=True)
class Yaml:
    """A value (text, list or dict; None for a plain null), and the places of the value and of everything inside it."""

    value: Any
    places: Mapping[Steps, Where]
    steps: Steps = field(default=())

    def where(self) -> Where:
        steps = self.steps
        while steps and steps not in self.places:
            steps = steps[:-1]
        return self.places[steps]

    def __getitem__(self, step: str | int) -> Yaml:
        return Yaml(self.value[step], self.places, (*self.steps, step))

    def get(self, key: str) -> Yaml | None:
        return self[key] if isinstance(self.value, dict) and key in self.value else None

    def items(self) -> list[tuple[str, Yaml]]:
        return [(key, self[key]) for key in self.value]

    def elements(self) -> list[Yaml]:
        return [self[index] for index in range(len(self.value))]

    def error(self, code: str, message: str, hint: str = "") -> RunnerError:
        return RunnerError(code, message, self.where(), hint)

    def as_list(self) -> list[Yaml]:
        """Returns the elements; a single value gives a list of one."""
        return self.elements() if isinstance(self.value, list) else [self]

    # Each of these returns what a value must be, or raises `yaml-type` with what it is instead.

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error("yaml-type", f"{self.name()} must be text, not {self.kind()}")
        return self.value

    def mapping(self) -> Yaml:
        if not isinstance(self.value, dict):
            raise self.error("yaml-type", f"{self.name()} must be a mapping of names to values, not {self.kind()}")
        return self

    def list(self) -> Yaml:
        if not isinstance(self.value, list):
            raise self.error("yaml-type", f"{self.name()} must be a list, not {self.kind()}")
        return self

    def data(self) -> Any:
        """Returns the value for a template: lists, mappings, true, false and none; all else is a text, so numbers keep
        their digits.
        """
        match self.value:
            case dict():
                return {key: value.data() for key, value in self.items()}
            case list():
                return [value.data() for value in self.elements()]
            case text:
                return WORDS.get(text, text)

    def only(self, known: Iterable[str], instead: Mapping[str, str] = {}) -> Yaml:
        """Returns the value itself; raises `unknown-key` for each key that is not known. For some keys, `instead` says
        what to do instead of writing them.
        """
        problems = Problems()
        known = list(known)
        for key, value in self.mapping().items():
            if key not in known:
                hint = instead.get(key) or nearest_or_all(key, known)
                problems.add(value.error("unknown-key", f'unknown key "{key}" in {self.name()}', hint))
        problems.raise_if_any()
        return self

    def name(self) -> str:
        names = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps]
        return f'"{"".join(names).lstrip(".")}"' if names else "the file"

    def kind(self) -> str:
        match self.value:
            case str():
                return f'"{self.value}"'
            case dict():
                return "a mapping"
            case list():
                return "a list"
            case _:
                return "empty"


def whole_number(text: str) -> int | None:
    """Returns the number that digits write; None for other text, and for more digits than 64 bits have.

    >>> whole_number("010"), whole_number("²"), whole_number("1" * 19)
    (10, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def last_leaf(node: Any) -> Any:
    """Returns the last value in the text of a block. The end of the block itself is where the next block begins."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node


def yaml_files(folder: Path) -> list[Path]:
    """Returns the YAML files in a folder and in the folders below it."""
    return sorted(path for path in folder.rglob("*") if path.suffix in (".yml", ".yaml"))


def read_yaml(path: Path) -> Yaml:
    """Returns the content of a YAML file; raises what `yaml_of` raises, and `yaml-size`."""
    size = path.stat().st_size
    if size > LARGEST:
        message = f"too large: {size} bytes, and a file of YAML has at most {LARGEST}"
        raise RunnerError("yaml-size", message, Where(path), "write what is in it to several files")
    return yaml_of(read_text(path), path)


def yaml_of(text: str, path: Path) -> Yaml:
    """Returns the content of YAML; raises `yaml-syntax`, `yaml-type`, `duplicate-key`, `yaml-unsupported`, `yaml-depth`
    or `yaml-alias` with the place.
    """
    built = Builder(path)
    try:
        # This does not use `yaml.compose`: that of libyaml calls itself for each level, and kills the process if there
        # are many.
        built.take(yaml.parse(text, Loader=LOADER))
    except yaml.MarkedYAMLError as e:
        mark, words = e.problem_mark, ", ".join(part for part in (e.context, e.problem) if part)
        raise RunnerError(
            "yaml-syntax", f"not YAML: {words}", Where(path, mark.line + 1, mark.column + 1) if mark else Where(path)
        ) from None
    except yaml.reader.ReaderError as e:
        line = text.encode().count(b"\n", 0, e.position) + 1
        raise RunnerError("yaml-syntax", f"not YAML: {e.reason}", Where(path, line)) from None
    except UnicodeEncodeError as e:
        raise RunnerError("yaml-syntax", "not YAML: not UTF-8", Where(path, text.count("\n", 0, e.start) + 1)) from None
    root = built.places.root
    return Yaml({} if root is None else root, built.places)


# --- events of a parser, as texts, lists and dicts with the place of each


class Places(Mapping[Steps, Where]):
    """The places of values by the steps that lead to them. Values inside a value that an alias repeats have none.

    Values are numbered in the order in which they were read. For each value, `marks` has the place where it begins, and
    `ends` the number of the first value after it that is not inside it. The value of a key has the place of its key.
    There are few objects for many values: what is inside a collection is looked up when it is asked for.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root: Any = None
        self.marks, self.ends = array("Q"), array("Q")
        self._inside: dict[int, Mapping[str | int, int]] = {}

    def __getitem__(self, steps: Steps) -> Where:
        number, value = 0, self.root
        for step in steps:
            number = self._members(number, value)[step]
            value = value[step]
        line, column = divmod(self.marks[number], LINE) if self.marks else (0, 0)
        return Where(self.path, line + 1, column + 1)

    def __iter__(self) -> Iterator[Steps]:
        return self._steps((), 0, self.root)

    def __len__(self) -> int:
        return max(len(self.marks), 1)

    def add(self, event: Any) -> int:
        """Returns the number of a value that begins here; it is the last value until another is added."""
        mark, number = event.start_mark, len(self.ends)
        self.marks.append(mark.line * LINE + mark.column)
        self.ends.append(number + 1)
        return number

    def end(self, number: int) -> None:
        """Records that all values since the one with this number are inside that one."""
        self.ends[number] = len(self.ends)

    def _members(self, number: int, value: Any) -> Mapping[str | int, int]:
        """Returns a mapping of the step that leads to each member of a value to the number of the member."""
        if number not in self._inside:
            numbers = list(self._following(number))
            self._inside[number] = dict(zip(value if isinstance(value, dict) else range(len(numbers)), numbers))
        return self._inside[number]

    def _following(self, number: int) -> Iterator[int]:
        member, end = number + 1, self.ends[number] if self.ends else 0
        while member < end:
            yield member
            member = self.ends[member]

    def _steps(self, to: Steps, number: int, value: Any) -> Iterator[Steps]:
        yield to
        for step, member in self._members(number, value).items():
            yield from self._steps((*to, step), member, value[step])


class _Open(NamedTuple):
    """A list or dict whose end was not yet read: the number of its place, and what the builder had read before it."""

    within: Any
    number: int
    anchor: str | None
    size: int


class Builder:
    """Takes the events of one document. The root of its places is its value, None if it has none; a value that aliases
    repeat is one object at several places.

    `within` is the innermost list or dict whose end was not yet read, `open` has an entry for each such list or
    dict, the outermost first; `key` is the key of a dict whose value comes next. `anchors` has the values that aliases
    stand for, each with its size, which is None while its end was not yet read.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.places = path, Places(path)
        self.within: Any = None
        self.key: str | None = None
        self.open: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int | None]] = {}
        self.size = self.repeated = self.documents = 0

    def take(self, events: Iterable[yaml.Event]) -> None:
        takers = {
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
            yaml.MappingStartEvent: self._start,
            yaml.SequenceStartEvent: self._start,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.DocumentStartEvent: self._document,
        }
        for event in events:
            if taker := takers.get(type(event)):
                taker(event)

    def _document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            raise self._error(event, "yaml-syntax", "not YAML: expected a single document, but found another document")

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        value = text if text not in PLAIN or event.style else self._plain(text, event)
        self.size += VALUE + len(text)
        if event.tag:
            raise self._tag(event)
        if event.anchor:
            self.anchors[event.anchor] = value, VALUE + len(text)
        self._add(value, event)

    def _plain(self, text: str, event: Any) -> str | None:
        """Returns what one of PLAIN means: a null is a text if it is a key."""
        if not self._awaits_key():
            return None if text in NULLS else text
        if text == MERGE_KEY:
            hint = "write the members of the mapping; a name that is << must stand in quotes"
            raise self._error(event, "yaml-unsupported", 'the merge key "<<" is not read', hint)
        return text

    def _alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise self._error(event, "yaml-syntax", f'not YAML: found undefined alias "{event.anchor}"')
        value, size = self.anchors[event.anchor]
        if size is None:
            raise self._error(event, "yaml-alias", f'the alias "{event.anchor}" is inside the value that it names')
        self.size += size
        self.repeated += size
        if self.repeated > MOST_REPEATED:
            message = f'aliases, up to "{event.anchor}", repeat more than {MOST_REPEATED} characters'
            raise self._error(event, "yaml-alias", message, "write less of it, or to several files")
        self._add(value, event)

    def _start(self, event: Any) -> None:
        if event.tag:
            raise self._tag(event)
        if len(self.open) == DEEPEST:
            raise self._error(event, "yaml-depth", f"more than {DEEPEST} lists and mappings in each other")
        value: Any = {} if type(event) is yaml.MappingStartEvent else []
        if event.anchor:
            self.anchors[event.anchor] = value, None
        self._add(value, event)
        self.open.append(_Open(self.within, len(self.places.ends) - 1, event.anchor, self.size))
        self.within = value
        self.size += VALUE

    def _end(self, event: Any) -> None:
        value = self.within
        self.within, number, anchor, size = self.open.pop()
        self.places.end(number)
        if anchor:
            self.anchors[anchor] = value, self.size - size

    def _awaits_key(self) -> bool:
        return self.key is None and type(self.within) is dict

    def _add(self, value: Any, event: Any) -> None:
        """Puts a value into the list or dict that it belongs to."""
        within = self.within
        if self.key is not None:
            within[self.key], self.key = value, None
            return
        if type(within) is list:
            within.append(value)
        elif type(within) is dict:
            self.key = self._new_key(value, event)
        else:
            self.places.root = value
        self.places.add(event)

    def _new_key(self, key: Any, event: Any) -> str:
        if not isinstance(key, str):
            raise self._error(event, "yaml-type", "a key must be text")
        if key in self.within:
            raise self._error(event, "duplicate-key", f'the key "{key}" appears twice')
        return key

    def _tag(self, event: Any) -> RunnerError:
        hint = "leave it out: every value is a text, a list or a mapping"
        return self._error(event, "yaml-unsupported", f'the tag "{event.tag}" is not read', hint)

    def _error(self, event: Any, code: str, message: str, hint: str = "") -> RunnerError:
        mark = event.start_mark
        return RunnerError(code, message, Where(self.path, mark.line + 1, mark.column + 1), hint)
