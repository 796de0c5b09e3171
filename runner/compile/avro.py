"""Messages in Avro: the functions that read them, as the fields that a format reads, and SQL that reads each message as
one record, whose images may be lists of values by position.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from runner.compile.compiled import Columns, Step, kept
from runner.compile.images import NamedImage
from runner.compile.keys import Keys
from runner.compile.paths import MAP, TEXT, TEXTS, Tree, conditions, header_paths, plant, row_images
from runner.compile.rows import MISMATCH, Cases, Rows
from runner.errors import Problems, RunnerError, nearest_or_all
from runner.functions.avro.layout import AvroFunction, Layout, Numbers, Slot, SlotTree
from runner.functions.avro.schema import (
    Enum,
    Record,
    Schema,
    SchemaError,
    alternatives,
    find,
    inside,
    not_of_kind,
    parse_schema,
)
from runner.render import name as quoted
from runner.spec.vocabulary import OTHERS
from runner.spec.words import Field, FieldPath, Format

SQL_TYPES = {
    "text": TEXT,
    "scalar": TEXT,
    "others": TEXT,
    "texts": TEXTS,
    "names": TEXTS,
    "numbers": "array<bigint>",
    "map": MAP,
    "types": MAP,
    "row": "struct<texts map<string,string>, missing array<string>, as_sent array<string>, settled array<string>, "
    "ambiguous array<string>>",
    "rows": "struct<texts array<map<string,string>>, missing array<array<string>>, as_sent array<array<string>>, "
    "settled array<array<string>>, ambiguous array<array<string>>>",
    "positional": "struct<texts array<string>, missing array<boolean>, as_sent array<int>, settled array<int>, "
    "ambiguous array<int>>",
}
Wanted = tuple[FieldPath, Slot]
"""A slot, and the path in the spec that asks for it."""


def avro_function(source: str, spec: Format) -> AvroFunction:
    """Returns the function for a source's messages; raises `schema-field` for a field that its schemas do not have. The
    name of the function depends on what the function reads.
    """
    # Equal slots are read once; errors point to the first of them.
    wanted: dict[Slot, FieldPath] = {}
    for path, slot in _with_taken([*_field_slots(spec), *_image_slots(spec)]):
        wanted.setdefault(slot, path)
    fields: Tree = {}
    images: Tree = {}
    for number, (slot, path) in enumerate(wanted.items()):
        # Lists of rows are read as fields: a format with lists treats them in Avro as in JSON.
        plant(images if slot.kind in ("row", "positional") else fields, path, number)
    layout = Layout(
        spec.message.schemas,
        tuple(wanted),
        spec.records,
        spec.message.skip_bytes,
        _op_paths(spec),
        _numbers(spec, wanted),
    )
    _check(spec, layout, list(wanted.values()))
    meaning = (layout, fields, images, *([layout.numbers] if layout.numbers else []))
    digest = hashlib.sha256(repr(meaning).encode()).hexdigest()[:8]
    trees = {"fields": fields, "images": images}
    members = [f"{name} {_sql_type(tree, layout.slots)}" for name, tree in trees.items() if tree]
    sql_type = f"struct<reason string, detail string, {', '.join(members)}>"
    return AvroFunction(f"avro_{source}_{digest}", layout, fields, images, sql_type)


def _numbers(spec: Format, wanted: Mapping[Slot, FieldPath]) -> Numbers | None:
    """Returns how messages name their schemas, and the fields that each must have; None if they name none."""
    if not spec.message.number_bytes:
        return None
    required = tuple(
        dict.fromkeys(
            (tuple(path.parent if slot.kind == "others" else path), slot.kind)
            for slot, path in wanted.items()
            if not spec.message.may_be_lacking(path)
        )
    )
    return Numbers(spec.message.number_bytes, spec.message.known, spec.message.registry, required)


def _with_taken(wanted: Sequence[Wanted]) -> Iterator[Wanted]:
    """Returns the same slots, but a slot for the other members of a map knows those that are read by themselves."""
    for path, slot in wanted:
        depth = len(slot.path)
        taken = {other[depth] for other, _ in wanted if other[:depth] == slot.path and len(other) > depth}
        yield path, replace(slot, taken=tuple(sorted(taken - {OTHERS}))) if slot.kind == "others" else slot


def _sql_type(tree: SlotTree, slots: Sequence[Slot]) -> str:
    members = (
        f"{quoted(name)} {SQL_TYPES[slots[branch].kind] if isinstance(branch, int) else _sql_type(branch, slots)}"
        for name, branch in tree.items()
    )
    return f"struct<{', '.join(members)}>"


def _field_slots(spec: Format) -> Iterator[Wanted]:
    """Returns the slots of the fields that are read besides the images. Members of rows are read with their images."""
    images = {path for image in row_images(spec) for path in image.at}
    for path in header_paths(spec):
        if spec.each and path.parent in images:
            continue
        if path[-1] == OTHERS:
            yield path, Slot(path.parent, "others")
        else:
            yield _wanted(path, "scalar" if path in images else "text")
    for image in row_images(spec):
        if image.names:
            yield _wanted(image.names, "texts")
    yield from _key_slots(spec)
    yield from _type_slots(spec)
    for condition in conditions(spec):
        if condition.test in ("has", "lacks") and not (spec.each and condition.path in images):
            yield _wanted(condition.path, "scalar" if condition.path in images else "text")


def _key_slots(spec: Format) -> Iterator[Wanted]:
    for key in spec.key:
        for path in key.names if not key.split else ():
            # Positions refer to a list of names, so the field must be a list.
            yield _wanted(path.parent, "text") if key.text else _wanted(path, "texts" if key.indexes else "names")
        if key.indexes:
            yield _wanted(key.indexes, "numbers")
        for path in key.image.at if key.image and not key.image.text else ():
            yield _wanted(path, "map")


def _type_slots(spec: Format) -> Iterator[Wanted]:
    types = spec.types
    if types is None:
        return
    for path in types.at:
        if types.schema:
            yield path, Slot(path, "types", names=types.schema, params=tuple(map(".".join, types.params)))
        elif types.name:
            yield from (_wanted(path.child(member), "texts") for member in (types.name, *types.value))
        else:
            yield _wanted(path, "map")


def _image_slots(spec: Format) -> Iterator[Wanted]:
    by_type, names = bool(spec.types and spec.types.tables), spec.types.schema if spec.types else ()
    for image in row_images(spec):
        for path in image.at:
            kind = "positional" if image.names else "rows" if spec.each else "row"
            yield path, Slot(path, kind, image.value, image.type, by_type=by_type, names=names)


def _wanted(path: FieldPath, kind: str) -> Wanted:
    return path, Slot(path, kind)


def _op_paths(spec: Format) -> tuple[FieldPath, ...]:
    """Returns the paths of the `op` fields; a record must have one of these fields to be a message."""
    return tuple(choice.path for choice in spec.op.by if isinstance(choice, Field))


# --- what the schemas do not have


def _check(spec: Format, layout: Layout, paths: Sequence[FieldPath]) -> None:
    """Raises `schema-field` for paths and types of the spec that no schema has. `paths` are those of the slots."""
    roots = [parse_schema(text) for text in (*layout.schemas, *spec.message.known.values())]
    if not roots:
        return
    problems = Problems()
    for path, slot in zip(paths, layout.slots):
        with problems.gathered():
            if spec.message.may_be_lacking(path) and not _at(roots, path):
                continue
            _check_slot(roots, path.parent if slot.kind == "others" else path, slot.kind)
    known = {one.name for root in roots for one in inside(root) if isinstance(one, (Record, Enum))}
    for name in spec.records:
        if name not in known:
            problems.add(
                spec.origin["records"][name].error(
                    "schema-field", f'the schema has no type "{name}"', nearest_or_all(name, known)
                )
            )
    problems.raise_if_any()
    # A schema with a number is checked only when a message has its number.
    for root in roots[: len(layout.schemas)]:
        _check_decoder(root, layout, spec)


def _check_decoder(root: Record, layout: Layout, spec: Format) -> None:
    # The import is here, so that only sources in Avro load the decoder.
    from runner.functions.avro.messages import record_decoder

    try:
        record_decoder(root, layout)
    except SchemaError as e:
        raise RunnerError("schema-field", f"the schema does not fit the spec: {e}", spec.origin.where()) from None


def _check_slot(roots: Sequence[Record], path: FieldPath, kind: str) -> None:
    found = _at(roots, path)
    if not found:
        raise _no_field(roots, path)
    if what := not_of_kind(found, path, kind):
        raise RunnerError("schema-field", f'in the schema, "{".".join(path)}" is not a {what}', path.where)


def _no_field(roots: Sequence[Record], path: FieldPath) -> RunnerError:
    """Returns the error for a path that no schema has, with the names that are known where it stops."""
    depth = next(depth for depth in range(len(path)) if not _at(roots, path[: depth + 1]))
    above = (one for schema in _at(roots, path[:depth]) for one in alternatives(schema))
    known = {name for one in above if isinstance(one, Record) for name in one.fields}
    return RunnerError(
        "schema-field",
        f'the schema has no field "{".".join(path[: depth + 1])}"',
        path.where,
        nearest_or_all(path[depth], known),
    )


def _at(roots: Sequence[Record], path: Sequence[str]) -> list[Schema]:
    return [one for root in roots for one in find(root, path)]


# --- the SQL that reads records


class Records:
    """Prints how messages in Avro are read, and what their images say of their columns. Raises `schema-field` for a
    field that the schemas do not have.
    """

    # The form of messages: bytes or text.
    form = "bytes"
    # The interface of Documents: messages in Avro have no parts, paths no other root, and no SQL reads them.
    has_parts = False
    roots: tuple[str, ...] = ()
    kept = ("error_detail", "own_schema")

    def __init__(self, rows: Rows, source: str, view: str) -> None:
        self.sql, self.header, self.rows, self.images = rows.sql, rows.header, rows, rows.images
        self.view = view
        self.functions = (avro_function(source, rows.spec),)
        self.python_functions = [self.functions[0].name]
        self.long_fields = self.images.listed

    def steps(self) -> Iterator[Step]:
        """Returns the step that reads the record of each message as `m` and its images, as they are in the record, as
        `sent_images`; if there is not one record, `parse_error` says why.
        """
        comment = "The fields that the format names, of the record in the bytes.  [message.schema, records]"
        record = self.sql("called", self.functions[0].name, ["raw", "own_schema"])
        yield Step("decoded", comment, self.view, {**kept("*"), "record": record})
        columns = {**kept(self.sql("all_except", ["record", "damage"])), "m": self.sql("member_of", "record", "fields")}
        if self.images.sent:
            columns["sent_images"] = self.sql("member_of", "record", "images")
        columns["parse_error"] = self.sql("why_no_record")
        if self.images.listed:
            columns["misfits"] = self.sql("texts_of", ())
        columns["read_detail"] = self.header.first(["damage", self.sql("member_of", "record", "detail")])
        if self.images.in_lists:
            columns |= self.rows.hidden_members()
        yield Step("parsed", "The one record of each message, or why there is not one.", "decoded", columns)

    def sql_functions(self) -> list[str]:
        return []

    # --- what images say of their columns

    def marks(self) -> Columns:
        """Prints the columns that one row of a message marks, if the images are lists of rows."""
        return self._all_marks() if self.images.listed else {}

    def _all_marks(self) -> Columns:
        """Prints the columns that a message, or one of its rows, marks: those whose values do not fit their class,
        those whose wall clock came twice in its zone, those whose values are not texts, and those that were not
        sent.
        """
        out = {"unfit_columns": self._marked("as_sent")}
        if self.images.may_be_ambiguous:
            out["ambiguous_columns"] = self._marked("ambiguous")
        if self.rows.has_readers:
            out["settled_columns"] = self._marked("settled")
        if self.images.may_lack_columns:
            out["missing_columns"] = self.sql(
                "all_missing", [*self._of_lists("missing"), *map(self._missing, self.images.sent)]
            )
        return out

    def listed(self) -> Columns:
        """Prints the lists of images of a message, each as a column."""
        return {self._listed(path): self.header.field(path) for path in self.images.listed}

    def _listed(self, path: Sequence[str]) -> str:
        return quoted("_".join(["listed", *path]))

    def _marked(self, member: str) -> str:
        of_images = [self._marked_in(image, member) for image in self.images.sent]
        return self.sql("all_marked", [*self._of_lists(member), *of_images])

    def _of_lists(self, member: str) -> list[str]:
        return [self.sql("marked_in_row", self._listed(path), member) for path in self.images.listed]

    def _marked_in(self, image: NamedImage, member: str) -> str:
        marked = self.sql("member_of", self.rows.sent(image), member)
        if not image.image.names:
            return self.sql("or_none", marked)
        return self.sql("marked_by_index", quoted(image.column), marked, self.header.field(image.image.names))

    def _missing(self, image: NamedImage) -> str:
        missing = self.sql("member_of", self.rows.sent(image), "missing")
        return self.sql(
            "or_none",
            self.sql("missing_names", self.header.field(image.image.names), missing) if image.image.names else missing,
        )

    # --- records that cannot be used

    def checked(self, keys: Keys) -> Columns:
        """Prints the details of a record that was checked, with the marks of images that are not lists of rows."""
        return {"error_detail": self._error_detail(keys), **(self._all_marks() if self.images.sent else {})}

    def bad(self, keys: Keys) -> Cases:
        """Prints the tests for a whole record that cannot be used: an image has more or fewer values than columns, or a
        key column is not in the list of columns.
        """
        tests = [self._is_uneven(image) for image in self.images.positional] + [test for test, _ in keys.beyond()]
        return [(test, MISMATCH) for test in tests]

    def detail(self) -> list[str]:
        """Prints the detail that is kept of a message that cannot be used."""
        return [self.sql("detail_of_record")]

    def _error_detail(self, keys: Keys) -> str:
        """Prints the details of an unusable record: the image whose values do not match its columns, or the key."""
        uneven = [(self._is_uneven(image), self._values_of_columns(image)) for image in self.images.positional]
        found = [self.sql("if_true", test, detail) for test, detail in [*uneven, *keys.beyond()]]
        return self.sql("first_of", ["read_detail", *found])

    def _is_uneven(self, image: NamedImage) -> str:
        return self.sql("is_uneven", self.rows.sent(image), quoted(image.column))

    def _values_of_columns(self, image: NamedImage) -> str:
        return self.sql(
            "values_of_columns", ".".join(image.path), self.rows.sent(image), self.header.field(image.image.names or ())
        )
