"""Format + source settings -> Plan: what the macros print, worked out beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from runner.errors import RunnerError
from runner.readers import PYTHON_READERS, Declared, Reader, declared_readers, reader_of_class
from runner.spec import Condition, Field, Format, Image, Line, Path, Value, fields_of

TEXT, TEXTS, MAP, MAPS = "string", "array<string>", "map<string,string>", "array<map<string,string>>"

# Language of an image -> the functions that read it: one for documents, one for patches.
TEXT_FUNCTIONS = {"mongo_shell": ("shell_document", "shell_patch")}

Tree = dict[str, "str | Tree"]


@dataclass(frozen=True)
class TextImage:
    """An image that is a text in a language of its own: the function that reads it, and the verdicts for which it is read."""

    path: Path
    function: str
    verdicts: tuple[str, ...]

    @property
    def column(self) -> str:
        return "_".join([self.function, *self.path])


@dataclass(frozen=True)
class TypeCase:
    """The readers of one type table: reader -> type names; `text` is the case of the switch, None where there is but one table."""

    text: str | None
    readers: Mapping[Reader, tuple[str, ...]]


@dataclass(frozen=True)
class Plan:
    """`fields` is the part of a message that is read, `header` its texts; `lists` are the paths whose elements are rows; `types` the readers
    of each type table that may be in use; `tables` what the source says of tables."""

    source: str
    spec: Format
    zone: str | None
    fields: Tree
    header: Tree
    lists: tuple[Path, ...]
    types: tuple[TypeCase, ...]
    tables: tuple[Declared, ...]

    @property
    def exact(self) -> bool:
        return self.spec.numbers == "exact"

    @property
    def readers(self) -> list[Reader]:
        """All readers that may be in use, each once."""
        of_tables = [reader for table in self.tables for reader in table.readers.values()]
        return list(dict.fromkeys([*(reader for case in self.types for reader in case.readers), *of_tables]))

    @property
    def needs_labels(self) -> bool:
        return any(reader.labelled for reader in self.readers)

    @property
    def python_readers(self) -> list[str]:
        """The readers in use that are functions over whole images."""
        return [kind for kind in PYTHON_READERS if any(kind in reader.kinds for reader in self.readers)]

    def words_with(self, kind: str) -> list[str]:
        """The words of the readers that try a kind of reading."""
        return [reader.word for reader in self.readers if kind in reader.kinds]

    @property
    def functions(self) -> list[str]:
        """The functions in use that are not Spark's own."""
        return list(dict.fromkeys([*(image.function for image in self.text_images), *self.python_readers]))

    @property
    def type_names(self) -> list[str]:
        """The type names whose values have a reader."""
        return list(dict.fromkeys(name for case in self.types for names in case.readers.values() for name in names))

    @property
    def labelled(self) -> list[str]:
        """The type names that list labels."""
        return list(dict.fromkeys(name for case in self.types for reader, names in case.readers.items() if reader.labelled for name in names))

    @property
    def long_names(self) -> bool:
        """Whether a type may be named by several words."""
        return any(" " in name for table in (self.spec.types.tables.all() if self.spec.types else ()) for name in table.classes)

    @property
    def sealed_fields(self) -> Tree:
        """The fields of a message, and the field of the seal behind it."""
        return {**self.fields, "seal": TEXT}

    def image_fields(self, kind: str) -> Tree:
        """The places of the rows, read as something else."""
        tree: Tree = {}
        for path in self.lists or self.images:
            _plant(tree, path, kind, self.spec)
        return tree

    @property
    def images(self) -> list[Path]:
        """The paths of images that are JSON of the message."""
        return _image_paths(self.spec)

    @property
    def lines(self) -> list[Line]:
        return self.spec.op.lines()

    @property
    def rows(self) -> list[Line]:
        """Row lines, one a verdict."""
        return list({line.verdict: line for line in self.lines if line.kind == "row"}.values())

    @property
    def updates(self) -> list[Line]:
        """Row lines with an image on both sides."""
        return [line for line in self.rows if line.op == "update" and line.before and line.after]

    @property
    def halves(self) -> list[str]:
        return [line.verdict for line in self.rows if line.half]

    def verdicts(self, side: str, completeness: str) -> list[str]:
        """The verdicts whose image on that side is at best so complete."""
        images = [(line.verdict, line.before if side == "before" else line.after) for line in self.rows]
        return [verdict for verdict, image in images if image and image.completeness == completeness]

    @property
    def text_images(self) -> list[TextImage]:
        """The texts that are to be read as images or keys, with the functions that read them."""
        wanted: dict[tuple[Path, str], list[str]] = {}
        for line in self.rows:
            for image in _texts_of(line, self.spec):
                wanted.setdefault((image.at[0], text_function(image)), []).append(line.verdict)
        return [TextImage(path, function, tuple(dict.fromkeys(verdicts))) for (path, function), verdicts in wanted.items()]

    def text_image(self, image: Image) -> TextImage | None:
        return next((one for one in self.text_images if image.text and (one.path, one.function) == (image.at[0], text_function(image))), None)

    @property
    def row_meta(self) -> dict[str, Value]:
        """Entries of `meta` that are members of the rows of a list."""
        return {entry: value for entry, value in self.spec.meta.items() if self.lists and all(field.path[:-1] in self.lists for field in fields_of(value))}

    @property
    def overlays(self) -> dict[str, list[str]]:
        """Image side -> verdicts whose image on that side is laid over the other one."""
        sides: dict[str, list[str]] = {"before": [], "after": []}
        for line in self.rows:
            for side, image in (("before", line.before), ("after", line.after)):
                if image and image.over:
                    sides[side].append(line.verdict)
        return sides

    def overriding(self, column: str) -> list[Line]:
        """The lines that give a column a value of their own, one a verdict."""
        return list({line.verdict: line for line in self.lines if column in line.columns}.values())

    @property
    def ddl_switches(self) -> list[Line]:
        return list({line.verdict: line for line in self.lines if line.ddl}.values())

    @property
    def order(self) -> list[tuple[Value, str, int]]:
        """The order numbers: value, reader, and which number of the text."""
        out: list[tuple[Value, str, int]] = []
        for value in self.spec.seq:
            first = value[0] if len(value) == 1 and isinstance(value[0], Field) else None
            reader, count = (first.reader, first.count) if first else ("text", 1)
            out += [(value, reader, number) for number in range(count)]
        return out

    def is_row_path(self, path: Path) -> bool:
        """Whether a path leads into an image that is one object of the message."""
        return path[:-1] in self.images


def make_plan(source: str, spec: Format, zone: str | None, tables: Iterable[object] = ()) -> Plan:
    """The plan for one source; its zone counts before the format's."""
    zone = zone or spec.zone
    fields: Tree = {}
    images = _image_paths(spec)
    for path, kind in _wanted(spec):
        _plant(fields, path, kind, spec)
    header: Tree = {}
    for path in _header_paths(spec):
        if not (spec.each and path[:-1] in images):
            _plant(header, path, TEXT, spec)
    declared = tuple(declared_readers(table, spec, zone) for table in tables)
    return Plan(source, spec, zone, fields, header, tuple(images) if spec.each else (), tuple(_type_cases(spec, zone)), declared)


def text_function(image: Image) -> str:
    document, patch = TEXT_FUNCTIONS[image.text or ""]
    return patch if image.completeness == "patch" else document


def _wanted(spec: Format) -> list[tuple[Path, str]]:
    """The fields to read and their types. Members of an image are read with it."""
    images = [(path, MAPS if spec.each else MAP) for path in _image_paths(spec)]
    parents = {path for path, _ in images}
    texts = [(path, TEXT) for path in _header_paths(spec) if path[:-1] not in parents]
    out = [*texts, *images, *_key_fields(spec), *_type_fields(spec, parents)]
    known = {path[: length + 1] for path, _ in out for length in range(len(path))}
    return [*out, *((c.path, TEXT) for c in _conditions(spec) if c.path not in known and c.path[:-1] not in parents)]


def _header_paths(spec: Format) -> list[Path]:
    """The paths of all texts of a message that the spec reads."""
    tables = (spec.types.tables.by,) if spec.types else ()
    lines = spec.op.lines()
    of_lines = [value for line in lines for value in (*line.columns.values(), *((line.ddl.by,) if line.ddl else ()))]
    out: list[Path] = []
    for value in (spec.op.by, *spec.columns.values(), *spec.seq, *spec.meta.values(), *tables, *of_lines):
        for field in fields_of(value):
            out += [field.path, *((field.behind,) if field.behind else ())]
    out += [c.path for c in _conditions(spec) if c.test in ("is", "is_not")]
    out += [image.at[0] for line in lines for image in _texts_of(line, spec)]
    out += [path for key in spec.key for path in (*key.values, *(key.names if key.split else ()))]
    return list(dict.fromkeys(out))


def _texts_of(line: Line, spec: Format) -> Iterator[Image]:
    """The images and keys of a line that are texts in a language of their own."""
    images = (line.before, line.after, *(key.image for key in spec.key)) if line.kind == "row" else ()
    return (image for image in images if image and image.text)


def _conditions(spec: Format) -> list[Condition]:
    lines = [c for line in spec.op.lines() for c in line.conditions]
    return [*lines, *(c for dropped in spec.drop for c in dropped.conditions)]


def _key_fields(spec: Format) -> Iterator[tuple[Path, str]]:
    for key in spec.key:
        yield from ((path, TEXTS) for path in key.names if not key.split)
        if key.image and not key.image.text:
            yield from ((path, MAP) for path in key.image.at)


def _type_fields(spec: Format, images: set[Path]) -> Iterator[tuple[Path, str]]:
    types = spec.types
    for path in types.at if types else ():
        members = ",".join(f"`{name}`:string" for name in dict.fromkeys([*([types.name] if types.name else []), *types.value]))
        if path[:-1] not in images:
            yield path, f"array<struct<{members}>>" if types.name else f"map<string,struct<{members}>>" if types.value else MAP


def _image_paths(spec: Format) -> list[Path]:
    images: Iterable[Image | None] = (image for line in spec.op.lines() for image in (line.before, line.after))
    return list(dict.fromkeys(path for image in images if image and not image.text for path in image.at))


def _plant(tree: Tree, path: Path, kind: str, spec: Format) -> None:
    for part in path[:-1]:
        branch = tree.setdefault(part, {})
        if isinstance(branch, str):
            raise _conflict(path, spec)
        tree = branch
    if tree.setdefault(path[-1], kind) != kind:
        raise _conflict(path, spec)


def _conflict(path: Path, spec: Format) -> RunnerError:
    return spec.origin.error("spec-conflict", f'"{".".join(path)}" is read as two different things, for instance as a text and as a row')


def _type_cases(spec: Format, zone: str | None) -> Iterator[TypeCase]:
    if spec.types is None or not spec.types.at:
        return
    tables = spec.types.tables
    cases = [*tables.cases.items(), (None, tables.otherwise)]
    for text, table in cases:
        readers: dict[Reader, list[str]] = {}
        for type_name, class_name in table.classes.items() if table else ():
            reader = reader_of_class(class_name, spec, zone, table.readers.get(type_name))
            if reader:
                readers.setdefault(reader, []).append(type_name)
        if readers or text is not None:
            yield TypeCase(text, {reader: tuple(names) for reader, names in readers.items()})

