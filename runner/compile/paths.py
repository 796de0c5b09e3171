"""The fields of a message that a spec reads: their paths, and the SQL types they are read as."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from runner.errors import RunnerError
from runner.spec.words import Condition, FieldPath, Format, Image, Line, Types, fields_of

TEXT, TEXTS, MAP, MAPS = "string", "array<string>", "map<string,string>", "array<map<string,string>>"

Tree = dict[str, Any]
"""Names -> what is read there, or a tree of the names below."""


def json_fields(spec: Format) -> list[tuple[FieldPath, str]]:
    """The fields to read and their types. Members of an image are read with the image."""
    images = [(path, MAPS if spec.each else MAP) for path in image_paths(spec)]
    parents = {path for path, _ in images}
    texts = [(path, TEXT) for path in header_paths(spec) if path.parent not in parents]
    out = [*texts, *images, *_key_fields(spec), *_type_fields(spec.types, parents)]
    known = {path[: length + 1] for path, _ in out for length in range(len(path))}
    return [*out, *((c.path, TEXT) for c in conditions(spec) if c.path not in known and c.path.parent not in parents)]


def header_paths(spec: Format) -> list[FieldPath]:
    """The paths of all texts of a message that the spec reads, each once."""
    tables = (spec.types.tables.by,) if spec.types and spec.types.tables else ()
    lines = spec.op.lines()
    of_lines = [value for line in lines for value in (*line.columns.values(), *((line.ddl.by,) if line.ddl else ()))]
    out: list[FieldPath] = []
    for value in (spec.op.by, *spec.columns.values(), *spec.seq, *spec.meta.values(), *tables, *of_lines):
        for field in fields_of(value):
            out += [field.path, *((field.behind,) if field.behind else ())]
    out += [c.path for c in conditions(spec) if c.test in ("is", "is_not")]
    out += [image.at[0] for line in lines for image in texts_of(line, spec)]
    out += [path for key in spec.key for path in (*key.values, *(key.names if key.split else ()))]
    return list(dict.fromkeys(out))


def texts_of(line: Line, spec: Format) -> Iterator[Image]:
    """The images of a line, and of the key, that are texts in a language."""
    images = (line.before, line.after, *(key.image for key in spec.key)) if line.kind == "row" else ()
    return (image for image in images if image and image.text)


def conditions(spec: Format) -> list[Condition]:
    """All conditions of the spec."""
    lines = [c for line in spec.op.lines() for c in line.conditions]
    return [*lines, *(c for dropped in spec.drop for c in dropped.conditions)]


def image_paths(spec: Format) -> list[FieldPath]:
    """The paths of all images that are not texts, each once."""
    images: Iterable[Image | None] = (image for line in spec.op.lines() for image in (line.before, line.after))
    return list(dict.fromkeys(path for image in images if image and not image.text for path in image.at))


def _key_fields(spec: Format) -> Iterator[tuple[FieldPath, str]]:
    for key in spec.key:
        yield from ((path.parent, TEXT) if key.text else (path, TEXTS) for path in key.names if not key.split)
        if key.image and not key.image.text:
            yield from ((path, MAP) for path in key.image.at)


def _type_fields(types: Types | None, images: set[FieldPath]) -> Iterator[tuple[FieldPath, str]]:
    if types is None:
        return
    names = dict.fromkeys([*([types.name] if types.name else []), *types.value])
    entry = f"struct<{','.join(f'`{name}`:string' for name in names)}>"
    kind = f"array<{entry}>" if types.name else f"map<string,{entry}>" if types.value else MAP
    yield from ((path, kind) for path in types.at if path.parent not in images)


def leaves(tree: Tree, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The path and the type of all that is read."""
    for name, branch in tree.items():
        if isinstance(branch, dict):
            yield from leaves(branch, (*above, name))
        else:
            yield (*above, name), branch


def depth(path: tuple[str, ...], kind: str) -> int:
    """How many objects and lists are around a value of this type at a path of a message, and inside of it.

    >>> depth(("op",), "string"), depth(("a", "b"), "map<string,string>"), depth(("a",), "array<map<string,string>>")
    (1, 3, 3)
    """
    return len(path) + kind.count("<")


def plant(tree: Tree, path: FieldPath, kind: str | int) -> None:
    """Adds what is read at a path to a tree; raises `spec-conflict` if the tree has something else there."""
    for part in path[:-1]:
        branch = tree.setdefault(part, {})
        if not isinstance(branch, dict):
            raise _conflict(path)
        tree = branch
    if tree.setdefault(path[-1], kind) != kind:
        raise _conflict(path)


def _conflict(path: FieldPath) -> RunnerError:
    return RunnerError(
        "spec-conflict",
        f'"{".".join(path)}" is read as two different things, for instance as a text and as a row',
        path.where,
    )
