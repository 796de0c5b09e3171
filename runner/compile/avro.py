"""A format in Avro -> the function that reads its records: what is wanted of a message, and the SQL type that it comes
in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from runner.compile.paths import MAP, TEXT, TEXTS, Tree, conditions, header_paths, place_of, plant
from runner.errors import Problems, RunnerError, nearest_or_all
from runner.functions.avro.messages import Layout, Slot, record_decoder
from runner.functions.avro.schema import (
    Array,
    Enum,
    Map,
    Record,
    Schema,
    SchemaError,
    find,
    inside,
    opened,
    parse_schema,
)
from runner.spec.words import Field, Format, Image, Path

SQL_TYPES = {
    "text": TEXT, "scalar": TEXT, "texts": TEXTS, "numbers": "array<bigint>", "map": MAP, "row": "struct<texts map<string,string>, missing array<string>, as_sent array<string>>",
    "positional": "struct<texts array<string>, missing array<int>, as_sent array<int>>",
}  # fmt: skip


@dataclass(frozen=True)
class AvroFunction:
    """`fields` and `images` are trees of names with the numbers of slots at their ends; `sql_type` is a struct of
    reason, detail and these two.
    """

    name: str
    layout: Layout
    fields: Tree
    images: Tree
    sql_type: str


def avro_function(source: str, spec: Format) -> AvroFunction:
    """The function for a source's messages; raises `schema-field` for what its schemas do not have. Its name changes
    with what it does.
    """
    wanted = [*avro_fields(spec), *_image_slots(spec)]
    slots = tuple(dict.fromkeys(wanted))
    fields: Tree = {}
    images: Tree = {}
    for number, slot in enumerate(slots):
        plant(images if slot.kind in ("row", "positional") else fields, slot.path, number, spec)
    layout = Layout(
        spec.message.schemas,
        slots,
        {name: asdict(entry) for name, entry in spec.records.items()},
        spec.message.skip_bytes,
        _ops(spec),
    )
    _check(spec, layout)
    digest = hashlib.sha256(repr((layout, fields, images)).encode()).hexdigest()[:8]
    kinds = [f"{name} {_sql_type(tree, slots)}" for name, tree in (("fields", fields), ("images", images)) if tree]
    return AvroFunction(
        f"avro_{source}_{digest}", layout, fields, images, f"struct<reason string, detail string, {', '.join(kinds)}>"
    )


def _sql_type(tree: Tree, slots: tuple[Slot, ...]) -> str:
    members = (
        f"`{name}` {_sql_type(branch, slots) if isinstance(branch, dict) else SQL_TYPES[slots[branch].kind]}"
        for name, branch in tree.items()
    )
    return f"struct<{', '.join(members)}>"


def avro_fields(spec: Format) -> Iterator[Slot]:
    """What is wanted of messages beside the images."""
    images = {path for image in row_images(spec) for path in image.at}
    for path in header_paths(spec):
        yield Slot(path, "scalar" if path in images else "text")
    for image in row_images(spec):
        if image.names:
            yield Slot(image.names, "texts")
    for key in spec.key:
        for path in key.names if not key.split else ():
            yield Slot(path[:-1], "text") if key.text else Slot(path, "texts")
        if key.indexes:
            yield Slot(key.indexes, "numbers")
        for path in key.image.at if key.image and not key.image.text else ():
            yield Slot(path, "map")
    types = spec.types
    for path in types.at if types else ():
        yield from (
            [Slot((*path, member), "texts") for member in (types.name, *types.value)]
            if types.name
            else [Slot(path, "map")]
        )
    for condition in conditions(spec):
        if condition.test in ("has", "lacks"):
            yield Slot(condition.path, "scalar" if condition.path in images else "text")


def _ops(spec: Format) -> tuple[Path, ...]:
    """The fields of which one must be there for a record to be a message."""
    return tuple(choice.path for choice in spec.op.by if isinstance(choice, Field))


def row_images(spec: Format) -> list[Image]:
    """The images of row changes that are no texts of their own, each once."""
    images = (image for line in spec.op.lines() for image in (line.before, line.after) if image and not image.text)
    return list(dict.fromkeys(images))


def _image_slots(spec: Format) -> Iterator[Slot]:
    for image in row_images(spec):
        for path in image.at:
            yield Slot(path, "positional", image.value, image.type) if image.names else Slot(path, "row")


# --- what the schemas do not have


def _check(spec: Format, layout: Layout) -> None:
    roots = [parse_schema(text) for text in layout.schemas]
    problems = Problems()
    for slot in layout.slots:
        with problems.gathered():
            _check_slot(spec, roots, slot)
    known = {one.name for root in roots for one in inside(root) if isinstance(one, (Record, Enum))}
    for name in spec.records:
        if name not in known:
            problems.add(
                spec.origin["records"][name].error(
                    "schema-field", f'the schema has no type "{name}"', nearest_or_all(name, known)
                )
            )
    problems.raise_if_any()
    for root in roots:
        try:
            record_decoder(root, layout)
        except SchemaError as e:
            raise RunnerError("schema-field", f"the schema is not as the spec says: {e}", spec.origin.where()) from None


def _check_slot(spec: Format, roots: Iterable[Schema], slot: Slot) -> None:
    found = [one for root in roots for one in find(root, slot.path)]
    if not found:
        depth = next(
            depth for depth in range(len(slot.path)) if not any(find(root, slot.path[: depth + 1]) for root in roots)
        )
        above = [one for root in roots for one in find(root, slot.path[:depth])]
        known = {name for schema in above for one in opened(schema) if isinstance(one, Record) for name in one.fields}
        path = ".".join(slot.path[: depth + 1])
        raise RunnerError(
            "schema-field",
            f'the schema has no field "{path}"',
            place_of(spec, slot.path),
            nearest_or_all(slot.path[depth], known),
        )
    needed = {"positional": Array, "row": Map, "texts": Array, "numbers": Array, "map": Map}.get(slot.kind)
    through_list = slot.kind in ("texts", "numbers") and len(slot.path) > 1
    if (
        needed
        and not through_list
        and not any(isinstance(one, needed) for schema in found for one in opened(schema, through_arrays=False))
    ):
        what = "list" if needed is Array else "map"
        raise RunnerError(
            "schema-field", f'in the schema "{".".join(slot.path)}" is no {what}', place_of(spec, slot.path)
        )
