"""Events of a YAML parser -> texts, lists and dicts, and the place of each, within bounds: what is small as a file
stays small when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from runner.errors import RunnerError, Where

Steps = tuple["str | int", ...]

# Bytes of a file; collections in each other; and characters that aliases repeat, where each value counts for some more.
LARGEST = 64_000_000
DEEPEST = 100
MOST_REPEATED = 10_000_000
VALUE = 10
# A place is one number, its line times this and its column: there are as many places as values.
LINE = 2**40


class Places(Mapping[Steps, Where]):
    """The places of values by the steps that lead to them. Values inside of what an alias repeats have none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.numbers: dict[Steps, int] = {(): 0}

    def __getitem__(self, steps: Steps) -> Where:
        line, column = divmod(self.numbers[steps], LINE)
        return Where(self.path, line + 1, column + 1)

    def __contains__(self, steps: object) -> bool:
        return steps in self.numbers

    def __iter__(self) -> Iterator[Steps]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, steps: Steps, event: Any) -> None:
        mark = event.start_mark
        self.numbers[steps] = mark.line * LINE + mark.column


@dataclass(slots=True)
class _Open:
    """A list or dict whose end was not yet read. `key` is that of a dict whose value comes next; `size` is what the
    builder had read before it.
    """

    value: Any
    steps: Steps
    anchor: str | None
    size: int
    key: str | None = None


@dataclass(frozen=True, slots=True)
class _Anchored:
    """What an alias of this name stands for, and its size; without a size while its end was not yet read."""

    value: Any
    size: int | None


class Builder:
    """Takes the events of one document. `root` is its value, None if it has none; a value that aliases repeat is one
    object at several places.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.places = path, Places(path)
        self.root: Any = None
        self.open: list[_Open] = []
        self.anchors: dict[str, _Anchored] = {}
        self.size = self.repeated = self.documents = 0
        self.takers: dict[type[yaml.Event], Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
            yaml.MappingStartEvent: self._start,
            yaml.SequenceStartEvent: self._start,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.DocumentStartEvent: self._document,
        }

    def take(self, event: yaml.Event) -> None:
        if taker := self.takers.get(type(event)):
            taker(event)

    def _document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            raise self._error(event, "yaml-syntax", "not YAML: expected a single document, but found another document")

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        is_plain = not event.style
        value = None if is_plain and text in ("", "~", "null") else text
        self.size += VALUE + len(text)
        if event.tag:
            raise self._tag(event)
        if event.anchor:
            self.anchors[event.anchor] = _Anchored(value, VALUE + len(text))
        if self._awaits_key():
            if is_plain and text == "<<":
                hint = "write the members of the mapping; a name that is << must stand in quotes"
                raise self._error(event, "yaml-unsupported", 'the merge key "<<" is not read', hint)
            self._key(text, event)
        else:
            self._add(value, event)

    def _alias(self, event: Any) -> None:
        anchored = self.anchors.get(event.anchor)
        if anchored is None:
            raise self._error(event, "yaml-syntax", f'not YAML: found undefined alias "{event.anchor}"')
        if anchored.size is None:
            raise self._error(event, "yaml-alias", f'the alias "{event.anchor}" is inside the value that it names')
        self.size += anchored.size
        self.repeated += anchored.size
        if self.repeated > MOST_REPEATED:
            message = f'aliases, up to "{event.anchor}", repeat more than {MOST_REPEATED} characters'
            raise self._error(event, "yaml-alias", message, "write less of it, or to several files")
        if self._awaits_key():
            self._key(anchored.value, event)
        else:
            self._add(anchored.value, event)

    def _start(self, event: Any) -> None:
        if event.tag:
            raise self._tag(event)
        if len(self.open) == DEEPEST:
            raise self._error(event, "yaml-depth", f"more than {DEEPEST} lists and mappings in each other")
        value: Any = {} if type(event) is yaml.MappingStartEvent else []
        size = self.size
        self.size += VALUE
        if event.anchor:
            self.anchors[event.anchor] = _Anchored(value, None)
        self.open.append(_Open(value, self._add(value, event), event.anchor, size))

    def _end(self, event: Any) -> None:
        closed = self.open.pop()
        if closed.anchor:
            self.anchors[closed.anchor] = _Anchored(closed.value, self.size - closed.size)

    def _awaits_key(self) -> bool:
        return bool(self.open) and self.open[-1].key is None and type(self.open[-1].value) is dict

    def _key(self, key: Any, event: Any) -> None:
        within = self.open[-1]
        if not isinstance(key, str):
            raise self._error(event, "yaml-type", "a key must be text")
        if key in within.value:
            raise self._error(event, "duplicate-key", f'the key "{key}" appears twice')
        within.key = key
        self.places.add((*within.steps, key), event)

    def _add(self, value: Any, event: Any) -> Steps:
        """Puts a value where it belongs; returns the steps that lead to it."""
        if not self.open:
            self.root = value
            self.places.add((), event)
            return ()
        within = self.open[-1]
        if type(within.value) is list:
            steps = (*within.steps, len(within.value))
            self.places.add(steps, event)
            within.value.append(value)
            return steps
        if within.key is None:
            raise self._error(event, "yaml-type", "a key must be text")
        steps = (*within.steps, within.key)
        within.value[within.key], within.key = value, None
        return steps

    def _tag(self, event: Any) -> RunnerError:
        hint = "leave it out: every value is a text, a list or a mapping"
        return self._error(event, "yaml-unsupported", f'the tag "{event.tag}" is not read', hint)

    def _error(self, event: Any, code: str, message: str, hint: str = "") -> RunnerError:
        mark = event.start_mark
        return RunnerError(code, message, Where(self.path, mark.line + 1, mark.column + 1), hint)
