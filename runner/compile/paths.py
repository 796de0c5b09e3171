"""The fields of a message that a spec reads: where they are, and what they are read as."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from runner.errors import RunnerError, Where
from runner.spec.words import Condition, Format, Image, Line, Path, fields_of

TEXT, TEXTS, MAP, MAPS = "string", "array<string>", "map<string,string>", "array<map<string,string>>"

Tree = dict[str, Any]
"""Names -> what stands there, or a tree again."""


def json_fields(spec: Format) -> list[tuple[Path, str]]:
    """The fields to read and their types. Members of an image are read with it."""
    images = [(path, MAPS if spec.each else MAP) for path in image_paths(spec)]
    parents = {path for path, _ in images}
    texts = [(path, TEXT) for path in header_paths(spec) if path[:-1] not in parents]
    out = [*texts, *images, *_key_fields(spec), *_type_fields(spec, parents)]
    known = {path[: length + 1] for path, _ in out for length in range(len(path))}
    return [*out, *((c.path, TEXT) for c in conditions(spec) if c.path not in known and c.path[:-1] not in parents)]


def header_paths(spec: Format) -> list[Path]:
    """The paths of all texts of a message that the spec reads."""
    tables = (spec.types.tables.by,) if spec.types and spec.types.tables else ()
    lines = spec.op.lines()
    of_lines = [value for line in lines for value in (*line.columns.values(), *((line.ddl.by,) if line.ddl else ()))]
    out: list[Path] = []
    for value in (spec.op.by, *spec.columns.values(), *spec.seq, *spec.meta.values(), *tables, *of_lines):
        for field in fields_of(value):
            out += [field.path, *((field.behind,) if field.behind else ())]
    out += [c.path for c in conditions(spec) if c.test in ("is", "is_not")]
    out += [image.at[0] for line in lines for image in texts_of(line, spec)]
    out += [path for key in spec.key for path in (*key.values, *(key.names if key.split else ()))]
    return list(dict.fromkeys(out))


def texts_of(line: Line, spec: Format) -> Iterator[Image]:
    """The images and keys of a line that are texts in a language of their own."""
    images = (line.before, line.after, *(key.image for key in spec.key)) if line.kind == "row" else ()
    return (image for image in images if image and image.text)


def conditions(spec: Format) -> list[Condition]:
    lines = [c for line in spec.op.lines() for c in line.conditions]
    return [*lines, *(c for dropped in spec.drop for c in dropped.conditions)]


def _key_fields(spec: Format) -> Iterator[tuple[Path, str]]:
    for key in spec.key:
        yield from ((path[:-1], TEXT) if key.text else (path, TEXTS) for path in key.names if not key.split)
        if key.image and not key.image.text:
            yield from ((path, MAP) for path in key.image.at)


def _type_fields(spec: Format, images: set[Path]) -> Iterator[tuple[Path, str]]:
    types = spec.types
    for path in types.at if types else ():
        members = ",".join(
            f"`{name}`:string" for name in dict.fromkeys([*([types.name] if types.name else []), *types.value])
        )
        if path[:-1] not in images:
            yield (
                path,
                f"array<struct<{members}>>" if types.name else f"map<string,struct<{members}>>" if types.value else MAP,
            )


def image_paths(spec: Format) -> list[Path]:
    images: Iterable[Image | None] = (image for line in spec.op.lines() for image in (line.before, line.after))
    return list(dict.fromkeys(path for image in images if image and not image.text for path in image.at))


def plant(tree: Tree, path: Path, kind: Any, spec: Format) -> None:
    for part in path[:-1]:
        branch = tree.setdefault(part, {})
        if not isinstance(branch, dict):
            raise conflict(path, spec)
        tree = branch
    if tree.setdefault(path[-1], kind) != kind:
        raise conflict(path, spec)


def conflict(path: Path, spec: Format) -> RunnerError:
    return RunnerError(
        "spec-conflict",
        f'"{".".join(path)}" is read as two different things, for instance as a text and as a row',
        place_of(spec, path),
    )


def place_of(spec: Format, path: Path) -> Where:
    """Where the spec names a path, or its beginning if that is nowhere."""
    text, origin = ".".join(path), spec.origin
    for steps, where in origin.places.items():
        value = origin.value
        for step in steps:
            value = (
                value[step]
                if (isinstance(value, dict) and step in value)
                or (isinstance(value, list) and isinstance(step, int) and step < len(value))
                else None
            )
        if value == text:
            return where
    return origin.where()
