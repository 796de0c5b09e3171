"""The fields that are read of messages in JSON, and how deep their lists and objects lie in each other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from runner.compile.images import grouped
from runner.compile.paths import (
    MAP,
    MAPS,
    TEXT,
    TEXTS,
    Tree,
    depth,
    image_kinds,
    json_fields,
    leaves,
    object_images,
    plant,
)
from runner.errors import RunnerError
from runner.spec.vocabulary import ABOVE_ROOT, KEY_ROW, OTHERS, RECORD_HEADERS, RECORD_KEY, RECORD_TOPIC, WHOLE
from runner.spec.words import FieldPath, Format

# The seal, and what Spark writes where a field of a document has another type than is read.
ADDED = ("_seal", "_corrupt_record")


class ImagePlace(NamedTuple):
    """An image: what messages about it call it, the paths where it may lie in the text of a message, and the SQL types
    that it may be read as.
    """

    name: str
    paths: tuple[FieldPath, ...]
    kinds: tuple[str, ...]


class JsonReading:
    """The fields that a format reads in the text of a message. Raises `spec-conflict` for a field that is read as two
    different things, or that has the name of one of ours.
    """

    def __init__(self, spec: Format) -> None:
        self.spec, self.kinds = spec, image_kinds(spec)
        # Numbers are put in quotes to keep their digits.
        self.exact = spec.message.numbers == "exact"
        # The whole message is a row.
        self.is_flat = (WHOLE,) in self.kinds
        self.fields = _fields(spec)
        self.sealed_fields: Tree = self.fields | dict.fromkeys(ADDED, TEXT)
        self.images = [
            ImagePlace(".".join(path), tuple(_places(path, spec)), (MAP, kind) if kind == MAPS else (kind,))
            for path, kind in self.kinds.items()
            if path not in ((WHOLE,), KEY_ROW)
        ]
        self.found = list(leaves(self.fields))
        # So deep lists and objects lie in each other if all values are plain.
        self.usual_depth = max((depth(path, kind) for path, kind in self.found), default=0)

    @cached_property
    def texts(self) -> dict[tuple[str, ...], list[str]]:
        """The path of each object, with the names of its fields that are texts."""
        return dict(grouped((path[:-1], path[-1]) for path, kind in self.found if kind == TEXT))

    @cached_property
    def others(self) -> list[tuple[tuple[str, ...], str]]:
        """All other fields, with their types."""
        return [(path, kind) for path, kind in self.found if kind != TEXT]

    @cached_property
    def value_lists(self) -> list[FieldPath]:
        """The paths of the images that are lists of values."""
        return [path for image in self.images for path in image.paths if TEXTS in image.kinds]

    @cached_property
    def shallow(self) -> list[tuple[tuple[str, ...], str]]:
        """The paths and types of texts and images that could hold lists and objects without being deeper than usual."""
        rows = {tuple(path) for image in self.images for path in image.paths if MAP in image.kinds}
        plain = [(path, kind) for path, kind in self.found if kind == TEXT or path in rows]
        return [(path, kind) for path, kind in plain if depth(path, kind) < self.usual_depth]

    @cached_property
    def shallow_objects(self) -> list[tuple[FieldPath, str, bool]]:
        """The paths of images of objects that could, with the member that holds a value; true for a list of objects."""
        return [
            (place, str(image.value), bool(image.name))
            for path, image in object_images(self.spec).items()
            for place in _places(path, self.spec)
            if depth(place, self.kinds[path]) < self.usual_depth
        ]


class Placing:
    """The fields where paths of a format start, and what it reads that is not in the message: the fields `above` the
    root, and of the record of a topic its `key`, as a tree of what is read there, its topic and its headers. Raises
    `spec-conflict`.
    """

    def __init__(self, spec: Format) -> None:
        paths = json_fields(spec)
        first = {path[0] for path, _ in paths}
        # The key is a row itself.
        self.key_is_row = any(path == KEY_ROW for path, _ in paths)
        self.key: Tree = {}
        for path, kind in paths:
            if self.key_is_row and path[0] == RECORD_KEY and path != KEY_ROW:
                raise RunnerError("spec-conflict", f'"{RECORD_KEY}" is read as two different things', path.where)
            if path[0] == RECORD_KEY and len(path) > 1:
                plant(self.key, FieldPath(path[1:], path.where), kind)
        names = tuple(dict.fromkeys(path[0] for path, _ in paths if path[0] not in BESIDE))
        # Paths start at the first of these that is an object; an empty path is the whole message.
        self.roots = tuple((_root(root), names) for root in spec.message.root)
        self.above = tuple(dict.fromkeys(path[1] for path, _ in paths if path[0] == ABOVE_ROOT))
        self.has_topic, self.has_headers = RECORD_TOPIC in first, RECORD_HEADERS in first

    @property
    def is_needed(self) -> bool:
        """True if fields are not already where paths lead to."""
        return bool(self.roots or self.above or self.key or self.key_is_row or self.has_topic or self.has_headers)


# What paths begin with that do not lead to a field below the root.
BESIDE = (RECORD_KEY, RECORD_TOPIC, RECORD_HEADERS, ABOVE_ROOT)


def _fields(spec: Format) -> Tree:
    """The tree of what is read of the text of a message."""
    fields: Tree = {}
    for path, kind in json_fields(spec):
        if path[-1] == OTHERS:
            message = f'"{OTHERS}" at the end of a path works only with encoding: avro'
            raise RunnerError("spec-path", message, path.where)
        if kind != MAP and len(path) == 1 and path[0] in (RECORD_KEY, RECORD_HEADERS, ABOVE_ROOT):
            message = f'"{path[0]}" is no text: a name follows it'
            raise RunnerError("spec-path", message, path.where, f"for instance {path[0]}.id")
        for place in _places(path, spec):
            if place[0] in ADDED:
                message = f'"{place[0]}" is a field that the compiled SQL adds itself'
                raise RunnerError("spec-conflict", message, path.where)
            plant(fields, place, kind)
    return fields


def _places(path: FieldPath, spec: Format) -> Iterator[FieldPath]:
    """The paths, from the top of a message, of what a path may lead to."""
    if path[0] == ABOVE_ROOT:
        yield FieldPath(path[1:], path.where)
    elif path[0] not in BESIDE:
        for root in spec.message.root or (FieldPath(),):
            yield FieldPath((*_root(root), *path), path.where)


def _root(path: FieldPath) -> FieldPath:
    return FieldPath() if path == (WHOLE,) else path
