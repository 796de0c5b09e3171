"""The fields of a message that a spec reads: their paths, and the SQL types they are read as."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runner.errors import RunnerError
from runner.render import name as quoted
from runner.spec.vocabulary import RECORD_KEY, WHOLE
from runner.spec.words import Condition, FieldPath, Format, Image, Key, Line, Types, fields_of

TEXT, TEXTS, MAP, MAPS = "string", "array<string>", "map<string,string>", "array<map<string,string>>"

Tree = dict[str, Any]
"""Names -> what is read there, or a tree of the names below."""

# A part of a path that leads to the element of a list in which a member has this value.
CHOSEN = re.compile(r"([^()]+)\(([^()=]+)=([^()]*)\)")


@dataclass(frozen=True)
class ChosenList:
    """A list at `below` of the element of the list at `path` whose `member` is `value`."""

    path: FieldPath
    member: str
    value: str
    below: str


def chosen_list(path: FieldPath) -> ChosenList | None:
    """Returns the list that a path through an element of a list leads to; None for other paths. Raises `spec-path` if
    the path has more than one name after the element.

    >>> chosen_list(FieldPath(["fields(field=after)", "fields"]))
    ChosenList(path=('fields',), member='field', value='after', below='fields')
    """
    found = [(number, match) for number, part in enumerate(path) if (match := CHOSEN.fullmatch(part))]
    if not found:
        return None
    number, match = found[0]
    if number != len(path) - 2:
        raise RunnerError(
            "spec-path", f'after "{path[number]}" the path has one more name', path.where, "for instance a(b=c).d"
        )
    return ChosenList(FieldPath((*path[:number], match[1]), path.where), match[2], match[3], path[-1])


def json_fields(spec: Format) -> list[tuple[FieldPath, str]]:
    """Returns the paths of the fields to read and their types. Members of an image are read with the image."""
    kinds = image_kinds(spec)
    rows = {path for path, kind in kinds.items() if kind in (MAP, MAPS) and path != (WHOLE,)}
    texts = [(path, TEXT) for path in header_paths(spec) if path.parent not in rows]
    out = [*texts, *kinds.items(), *_fields_of_images(spec), *_key_fields(spec), *_type_fields(spec, rows)]
    known = {path[: length + 1] for path, _ in out for length in range(len(path))}
    return [*out, *((c.path, TEXT) for c in conditions(spec) if c.path not in known and c.path.parent not in rows)]


def image_kinds(spec: Format) -> dict[FieldPath, str]:
    """Returns the paths of all images that are not texts, with the types that they are read as."""
    return {path: _image_kind(path, image, spec) for image in row_images(spec) for path in image.at}


def _image_kind(path: FieldPath, image: Image, spec: Format) -> str:
    if spec.each:
        return MAPS
    if image.names:
        return TEXTS
    return _list_of_objects(path, spec) if image.name else _object_of_objects(path, spec) if image.value else MAP


def _list_of_objects(path: FieldPath, spec: Format) -> str:
    """Prints the SQL type of a list whose objects are columns of images, or name columns or their types, or both."""
    return f"array<{struct_type(_column_object(path, spec))}>"


def _object_of_objects(path: FieldPath, spec: Format) -> str:
    """Prints the SQL type of an object that has, for each column, an object as in `_list_of_objects`."""
    return f"map<string,{struct_type(_column_object(path, spec))}>"


def _column_object(path: FieldPath, spec: Format) -> Tree:
    """Returns the members that are read of each object at a path; each such object stands for a column."""
    tree: Tree = {}
    for image in row_images(spec):
        if (image.name or image.has_members) and path in image.at:
            tree |= {member: TEXT for member in (image.name, image.value) if member}
        if image.names and image.names.parent == path:
            tree |= {image.names[-1]: TEXT}
    for key in spec.key:
        if key.members == path:
            tree |= {member: TEXT for member in (key.member, key.flag) if member}
    types = spec.types
    if types and path in types.at:
        tree |= _entry(types)
    return tree


def _entry(types: Types) -> Tree:
    """Returns the members that are read of an object that names the type of a column."""
    tree: Tree = {member: TEXT for member in (types.name, *types.value, types.flag, types.default) if member}
    above = [FieldPath(), *([FieldPath([types.items])] if types.items else [])]
    for path in (FieldPath((*place, *one)) for place in above for one in types.params):
        plant(tree, path, TEXT)
    for member in types.value if types.items else ():
        plant(tree, FieldPath([types.items or "", member]), TEXT)
    return tree


def struct_type(tree: Tree) -> str:
    """Prints the SQL type of an object with these members.

    >>> struct_type({"a": "string", "b": {"c": "string"}})
    'struct<`a`:string,`b`:struct<`c`:string>>'
    """
    members = (f"{quoted(name)}:{struct_type(kind) if isinstance(kind, dict) else kind}" for name, kind in tree.items())
    return f"struct<{','.join(members)}>"


def _fields_of_images(spec: Format) -> Iterator[tuple[FieldPath, str]]:
    """Returns the lists that belong to images: the names of values by position, unless they are read with the objects
    that they are in, and the columns that patches remove.
    """
    lists = _lists_of_objects(spec)
    for line in spec.op.lines():
        for image in (line.before, line.after):
            found = (image.names, image.removed) if image else ()
            yield from ((path, TEXTS) for path in found if path and path.parent not in lists)


def _lists_of_objects(spec: Format) -> set[FieldPath]:
    """Returns the lists whose objects name the types of columns, or the columns of the key."""
    types = spec.types.at if spec.types and spec.types.name else ()
    return {*types, *(key.members for key in spec.key if key.members and key.member)}


def header_paths(spec: Format) -> list[FieldPath]:
    """Returns the paths of all texts of a message that the spec reads, each once."""
    tables = (spec.types.tables.by,) if spec.types and spec.types.tables else ()
    lines = spec.op.lines()
    of_lines = [value for line in lines for value in (*line.columns.values(), *((line.ddl.by,) if line.ddl else ()))]
    out: list[FieldPath] = []
    for value in (spec.op.by, *spec.columns.values(), *spec.seq, *spec.meta.values(), *tables, *of_lines):
        for field in fields_of(value):
            out += [field.path, *((field.behind,) if field.behind else ())]
    out += [c.path for c in conditions(spec) if c.test in ("is", "is_not")]
    out += [path for line in lines for path in line.tells]
    out += [image.at[0] for line in lines for image in texts_of(line, spec)]
    out += [path for key in spec.key for path in (*key.values, *(key.names if key.split else ()))]
    return list(dict.fromkeys(out))


def texts_of(line: Line, spec: Format) -> Iterator[Image]:
    """Returns the images of a line, and of the key, that are texts in a language."""
    images = (line.before, line.after, *(key.image for key in spec.key)) if line.kind == "row" else ()
    return (image for image in images if image and image.text)


def conditions(spec: Format) -> list[Condition]:
    """Returns all conditions of the spec."""
    lines = [c for line in spec.op.lines() for c in line.conditions]
    return [*lines, *(c for _, conditions in spec.drop for c in conditions)]


def image_paths(spec: Format) -> list[FieldPath]:
    """Returns the paths of all images that are not texts, each once."""
    return list(dict.fromkeys(path for image in row_images(spec) for path in image.at))


def object_images(spec: Format) -> dict[FieldPath, Image]:
    """Returns the images that are objects, or lists, of objects with a column's value each, by path."""
    return {path: image for image in row_images(spec) if image.value and not image.names for path in image.at}


def row_images(spec: Format) -> list[Image]:
    """Returns the images of row changes that are not texts, each once."""
    images = (image for line in spec.op.lines() for image in (line.before, line.after) if image and not image.text)
    return list(dict.fromkeys(images))


def _key_fields(spec: Format) -> Iterator[tuple[FieldPath, str]]:
    for key in spec.key:
        yield from ((path.parent, TEXT) if key.text else (path, TEXTS) for path in key.names if not key.split)
        if key.image and not key.image.text:
            yield from ((path, MAP) for path in key.image.at)
        if key.members and key.members != (RECORD_KEY,):
            yield key.members, _kind_of_members(key, key.members, spec)


def _kind_of_members(key: Key, path: FieldPath, spec: Format) -> str:
    if key.member:
        return _list_of_objects(path, spec)
    return _object_of_objects(path, spec) if key.flag else MAP


def _type_fields(spec: Format, images: set[FieldPath]) -> Iterator[tuple[FieldPath, str]]:
    types = spec.types
    if types is None:
        return
    if types.names:
        yield types.names, TEXTS
    for path in types.at:
        chosen = chosen_list(path)
        if chosen:
            tree = {chosen.member: TEXT, chosen.below: f"array<{struct_type(_entry(types))}>"}
            yield chosen.path, f"array<{struct_type(tree)}>"
        elif path.parent not in images:
            yield path, _types_kind(path, types, spec)


def _types_kind(path: FieldPath, types: Types, spec: Format) -> str:
    if types.names:
        return TEXTS
    if types.name:
        return _list_of_objects(path, spec)
    return _object_of_objects(path, spec) if types.value else MAP


def leaves(tree: Tree, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Returns the path and the type of each field in a tree."""
    for name, branch in tree.items():
        if isinstance(branch, dict):
            yield from leaves(branch, (*above, name))
        else:
            yield (*above, name), branch


def depth(path: tuple[str, ...], kind: str) -> int:
    """Returns the number of objects and lists around a value of this type at a path of a message, and inside of the
    value.

    >>> depth(("op",), "string"), depth(("a", "b"), "map<string,string>"), depth(("a",), "array<map<string,string>>")
    (1, 3, 3)
    """
    return len(path) + kind.count("<")


def plant(tree: Tree, path: FieldPath, kind: str | int) -> None:
    """Adds a field that is read at a path to a tree; raises `spec-conflict` if the tree has something else there."""
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
