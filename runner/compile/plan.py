"""Format + source settings -> Plan: what the macros print, worked out beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from runner.compile.avro import avro_function, row_images
from runner.compile.paths import TEXT, Tree, header_paths, image_paths, json_fields, plant, texts_of
from runner.compile.readers import PYTHON_READERS, Declared, Reader, declared_readers, reader_of_class
from runner.contract import MESSAGE_COLUMNS
from runner.functions.avro.layout import AvroFunction
from runner.spec.words import Field, FieldPath, Format, Image, Line, Value, fields_of

# Language of an image -> the functions that read it: one for documents, one for patches.
TEXT_FUNCTIONS = {"mongo_shell": ("shell_document", "shell_patch")}


@dataclass(frozen=True)
class TextImage:
    """An image that is a text in a language of its own: the function that reads it, and the verdicts for which it is
    read.
    """

    path: FieldPath
    function: str
    verdicts: tuple[str, ...]

    @property
    def column(self) -> str:
        return "_".join([self.function, *self.path])


def image_column(path: FieldPath) -> str:
    return "_".join(["image", *path])


@dataclass(frozen=True)
class SentImage:
    """An image of a message in Avro, as it lies there: `column` is what it is called once its columns have their names."""

    image: Image
    path: FieldPath

    @property
    def column(self) -> str:
        return image_column(self.path)


@dataclass(frozen=True)
class TypeCase:
    """The readers of one type table: reader -> type names; `text` is the case of the switch, None where there is but
    one table.
    """

    text: str | None
    readers: Mapping[Reader, tuple[str, ...]]


@dataclass(frozen=True)
class Plan:
    """`fields` is the part of a message that is read, `header` its texts; `lists` are the paths whose elements are
    rows; `types` the readers
    of each type table that may be in use; `tables` what the source says of tables."""

    source: str
    spec: Format
    zone: str | None
    fields: Tree
    header: Tree
    lists: tuple[FieldPath, ...]
    types: tuple[TypeCase, ...]
    tables: tuple[Declared, ...]
    avro: AvroFunction | None = None

    @property
    def exact(self) -> bool:
        return self.avro is None and self.spec.message.numbers == "exact"

    @property
    def message_columns(self) -> Mapping[str, str]:
        return MESSAGE_COLUMNS[self.spec.message.encoding]

    @property
    def sent_images(self) -> list[SentImage]:
        """The images that lie in records of Avro."""
        return [SentImage(image, path) for image in (row_images(self.spec) if self.avro else ()) for path in image.at]

    @property
    def may_lack_columns(self) -> bool:
        """Whether an image may say of a column that it was not sent."""
        return bool(self.avro) and any(entry.not_sent for entry in self.spec.records.values())

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
        return list(
            dict.fromkeys(
                [
                    *([self.avro.name] if self.avro else []),
                    *(image.function for image in self.text_images),
                    *self.python_readers,
                ]
            )
        )

    @property
    def type_names(self) -> list[str]:
        """The type names whose values have a reader."""
        return list(dict.fromkeys(name for case in self.types for names in case.readers.values() for name in names))

    @property
    def labelled(self) -> list[str]:
        """The type names that list labels."""
        return list(
            dict.fromkeys(
                name
                for case in self.types
                for reader, names in case.readers.items()
                if reader.labelled
                for name in names
            )
        )

    @property
    def long_names(self) -> bool:
        """Whether a type may be named by several words."""
        return any(
            " " in name for table in (self.spec.types.all_tables() if self.spec.types else ()) for name in table.classes
        )

    @property
    def sealed_fields(self) -> Tree:
        """The fields of a message, and the field of the seal behind it."""
        return {**self.fields, "seal": TEXT}

    def image_fields(self, kind: str) -> Tree:
        """The places of the rows, read as something else."""
        tree: Tree = {}
        for path in self.lists or self.images:
            plant(tree, path, kind)
        return tree

    @property
    def images(self) -> list[FieldPath]:
        """The paths of images that are JSON of the message."""
        return [] if self.avro else image_paths(self.spec)

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

    def image_at(self, path: FieldPath) -> str:
        """What the image at a path of a record in Avro is called."""
        return image_column(path)

    def verdicts(self, side: str, completeness: str) -> list[str]:
        """The verdicts whose image on that side is at best so complete."""
        images = [(line.verdict, line.before if side == "before" else line.after) for line in self.rows]
        return [verdict for verdict, image in images if image and image.completeness == completeness]

    @property
    def text_images(self) -> list[TextImage]:
        """The texts that are to be read as images or keys, with the functions that read them."""
        wanted: dict[tuple[FieldPath, str], list[str]] = {}
        for line in self.rows:
            for image in texts_of(line, self.spec):
                wanted.setdefault((image.at[0], text_function(image)), []).append(line.verdict)
        return [
            TextImage(path, function, tuple(dict.fromkeys(verdicts))) for (path, function), verdicts in wanted.items()
        ]

    def text_image(self, image: Image) -> TextImage | None:
        return next(
            (
                one
                for one in self.text_images
                if image.text and (one.path, one.function) == (image.at[0], text_function(image))
            ),
            None,
        )

    @property
    def row_meta(self) -> dict[str, Value]:
        """Entries of `meta` that are members of the rows of a list."""
        return {
            entry: value
            for entry, value in self.spec.meta.items()
            if self.lists and all(field.path[:-1] in self.lists for field in fields_of(value))
        }

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

    def is_row_path(self, path: FieldPath) -> bool:
        """Whether a path leads into an image that is one object of the message."""
        return path[:-1] in self.images


def make_plan(source: str, spec: Format, zone: str | None, tables: Iterable[object] = ()) -> Plan:
    """The plan for one source; its zone counts before the format's."""
    zone = zone or spec.zone
    fields: Tree = {}
    avro = avro_function(source, spec) if spec.message.encoding == "avro" else None
    for path, kind in () if avro else json_fields(spec):
        plant(fields, path, kind)
    images = () if avro else tuple(image_paths(spec))
    header: Tree = {}
    for path in header_paths(spec):
        if not (spec.each and path[:-1] in images):
            plant(header, path, TEXT)
    declared = tuple(declared_readers(table, spec, zone) for table in tables)
    return Plan(
        source, spec, zone, fields, header, images if spec.each else (), tuple(_type_cases(spec, zone)), declared, avro
    )


def text_function(image: Image) -> str:
    document, patch = TEXT_FUNCTIONS[image.text or ""]
    return patch if image.completeness == "patch" else document


def _type_cases(spec: Format, zone: str | None) -> Iterator[TypeCase]:
    if spec.types is None or not spec.types.at or not spec.types.tables:
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
