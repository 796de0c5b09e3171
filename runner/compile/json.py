"""The fields that are read of messages in JSON, and the depth at which lists and objects lie in each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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

# The runner's own fields of a document: the seal, and the text of a document with a field of another type than is read.
ADDED = ("_seal", "_corrupt_record")


@dataclass(frozen=True)
class ImagePlace:
    """An image in JSON: its `name` in messages to users, the `paths` where it may lie in the text of a message, and the
    `kinds`, the SQL types that it may be read as.
    """

    name: str
    paths: tuple[FieldPath, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class JsonReading:
    """The fields that a format reads. `exact` is True if numbers are put in quotes to keep their digits. `fields` is
    the tree of the fields, `sealed_fields` the same tree with the runner's own fields. `usual_depth` is how deep lists
    and objects lie in each other if all values are plain. `shallow` are the paths and types of texts and images that
    could hold more without being deeper. `shallow_objects` are the paths of images of objects that could, with the
    member that holds a value, and True if they are a list. `texts` has the path of each object with the names of its
    fields that are texts, `others` all other fields with their types, `images` the places of images, `value_lists` the
    paths of those that are lists of values. `is_flat` is True if the whole message is a row.
    """

    exact: bool
    fields: Tree
    sealed_fields: Tree
    usual_depth: int
    shallow: list[tuple[tuple[str, ...], str]]
    shallow_objects: list[tuple[FieldPath, str, bool]]
    texts: dict[tuple[str, ...], list[str]]
    others: list[tuple[tuple[str, ...], str]]
    images: list[ImagePlace]
    value_lists: list[FieldPath]
    is_flat: bool


@dataclass(frozen=True)
class Placing:
    """The places where paths start. `roots` are objects, each with the names that are read there: the first that is an
    object counts, and an empty path is the whole message. `above` are the fields above the roots. The rest came with
    the message as a record of a topic: `key` is the tree of what is read of its key, `key_is_row` is True if the whole
    key is a row, `has_topic` and `has_headers` are True if these are read.
    """

    roots: tuple[tuple[FieldPath, tuple[str, ...]], ...]
    above: tuple[str, ...]
    key: Tree
    key_is_row: bool
    has_topic: bool
    has_headers: bool

    @property
    def is_needed(self) -> bool:
        """True if paths start somewhere else than at the fields of a message itself."""
        return bool(self.roots or self.above or self.key or self.key_is_row or self.has_topic or self.has_headers)


def json_reading(spec: Format) -> JsonReading:
    """Returns the fields that a format reads; raises `spec-conflict` for a field that is read as two different things,
    or that has the name of one of the runner's own fields.
    """
    fields, kinds = _fields(spec), image_kinds(spec)
    found = list(leaves(fields))
    images = [
        ImagePlace(".".join(path), tuple(_places(path, spec)), (MAP, kind) if kind == MAPS else (kind,))
        for path, kind in kinds.items()
        if path not in ((WHOLE,), KEY_ROW)
    ]
    rows = {tuple(path) for image in images for path in image.paths if MAP in image.kinds}
    deepest = max((depth(path, kind) for path, kind in found), default=0)
    return JsonReading(
        exact=spec.message.numbers == "exact",
        fields=fields,
        sealed_fields=fields | dict.fromkeys(ADDED, TEXT),
        usual_depth=deepest,
        shallow=[
            (path, kind) for path, kind in found if (kind == TEXT or path in rows) and depth(path, kind) < deepest
        ],
        shallow_objects=[
            (place, str(image.value), bool(image.name))
            for path, image in object_images(spec).items()
            for place in _places(path, spec)
            if depth(place, kinds[path]) < deepest
        ],
        texts=dict(grouped((path[:-1], path[-1]) for path, kind in found if kind == TEXT)),
        others=[(path, kind) for path, kind in found if kind != TEXT],
        images=images,
        value_lists=[path for image in images for path in image.paths if TEXTS in image.kinds],
        is_flat=(WHOLE,) in kinds,
    )


def placing(spec: Format) -> Placing:
    """Returns where the paths of a format start, and the fields that the format reads beside the message."""
    paths = json_fields(spec)
    key: Tree = {}
    key_is_row = any(path == KEY_ROW for path, _ in paths)
    for path, kind in paths:
        if key_is_row and path[0] == RECORD_KEY and path != KEY_ROW:
            raise RunnerError("spec-conflict", f'"{RECORD_KEY}" is read as two different things', path.where)
        if path[0] == RECORD_KEY and len(path) > 1:
            plant(key, FieldPath(path[1:], path.where), kind)
    names = tuple(dict.fromkeys(path[0] for path, _ in paths if path[0] not in BESIDE))
    return Placing(
        tuple((_root(root), names) for root in spec.message.root),
        tuple(dict.fromkeys(path[1] for path, _ in paths if path[0] == ABOVE_ROOT)),
        key,
        key_is_row,
        any(path[0] == RECORD_TOPIC for path, _ in paths),
        any(path[0] == RECORD_HEADERS for path, _ in paths),
    )


# The first parts of paths that do not lead to a field below the root.
BESIDE = (RECORD_KEY, RECORD_TOPIC, RECORD_HEADERS, ABOVE_ROOT)


def _fields(spec: Format) -> Tree:
    """Returns the tree of the fields that are read of the text of a message."""
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
    """Returns the paths, from the top of a message, to the places that a path may lead to."""
    if path[0] == ABOVE_ROOT:
        yield FieldPath(path[1:], path.where)
    elif path[0] not in BESIDE:
        for root in spec.message.root or (FieldPath(),):
            yield FieldPath((*_root(root), *path), path.where)


def _root(path: FieldPath) -> FieldPath:
    return FieldPath() if path == (WHOLE,) else path
