"""Format + source settings -> Plan: what the macros print, worked out beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runner.contract import CLASS_READERS
from runner.errors import RunnerError
from runner.spec import Format, Image, Line, Path, Value

TEXT, TEXTS, MAP, MAPS = "string", "array<string>", "map<string,string>", "array<map<string,string>>"

Tree = dict[str, "str | Tree"]


@dataclass(frozen=True)
class Plan:
    """`fields` is the part of a message that is read; `lists` the paths whose elements are rows; `readers` the readers of this format that
    are in use, with the type names of each."""

    source: str
    spec: Format
    zone: str | None
    fields: Tree
    lists: tuple[Path, ...]
    readers: Mapping[str, tuple[str, ...]]

    @property
    def exact(self) -> bool:
        return self.spec.numbers == "exact"

    @property
    def needs_labels(self) -> bool:
        return bool({"ordinal", "mask"} & set(self.readers))

    @property
    def type_names(self) -> list[str]:
        """The type names whose values have a reader."""
        return [name for names in self.readers.values() for name in names]

    @property
    def labelled(self) -> list[str]:
        """The type names that list labels."""
        return [*self.readers.get("ordinal", ()), *self.readers.get("mask", ())]

    @property
    def sealed_fields(self) -> Tree:
        """The fields of a message, and the field of the seal behind it."""
        return {**self.fields, "seal": TEXT}

    @property
    def header(self) -> Tree:
        """The fields of a message that are texts."""
        return _texts(self.fields)

    def list_fields(self, kind: str) -> Tree:
        """The lists of rows, read as something else."""
        tree: Tree = {}
        for path in self.lists:
            _plant(tree, path, kind, self.spec)
        return tree

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
        return [line for line in self.rows if line.op == "update" and line.before]

    @property
    def row_meta(self) -> dict[str, Value]:
        """Entries of `meta` that are members of a row."""
        images = _image_paths(self.spec)
        return {entry: value for entry, value in self.spec.meta.items() if all(choice.path[:-1] in images for choice in value)}

    @property
    def overlays(self) -> dict[str, list[str]]:
        """Image side -> verdicts whose image on that side is laid over the other one."""
        sides = {"before": [], "after": []}
        for line in self.rows:
            for side, image in (("before", line.before), ("after", line.after)):
                if image and image.over:
                    sides[side].append(line.verdict)
        return sides


def make_plan(source: str, spec: Format, zone: str | None) -> Plan:
    """The plan for one source; its zone counts before the format's."""
    zone = zone or spec.zone
    fields: Tree = {}
    for path, kind in _wanted(spec):
        _plant(fields, path, kind, spec)
    lists = tuple(_image_paths(spec)) if spec.each else ()
    return Plan(source, spec, zone, fields, lists, _readers(spec, zone))


def _wanted(spec: Format) -> list[tuple[Path, str]]:
    values = [spec.op.by, *spec.columns.values(), *spec.seq, *spec.meta.values()]
    images = [(path, MAPS if spec.each else MAP) for path in _image_paths(spec)]
    texts = [choice.path for value in values for choice in value if choice.path[:-1] not in dict(images)]
    conditions = [c for line in spec.op.lines() for c in line.conditions]
    texts += [c.path for c in conditions if c.test in ("is", "is_not")]
    out = [*((p, TEXT) for p in texts), *images, *((p, TEXTS) for p in spec.key), *((p, MAP) for p in (spec.types.at if spec.types else ()))]
    known = {path[: length + 1] for path, _ in out for length in range(len(path))}
    return [*out, *((c.path, TEXT) for c in conditions if c.path not in known)]


def _image_paths(spec: Format) -> list[Path]:
    images: Iterable[Image | None] = (image for line in spec.op.lines() for image in (line.before, line.after))
    return list(dict.fromkeys(path for image in images if image for path in image.at))


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


def _readers(spec: Format, zone: str | None) -> dict[str, tuple[str, ...]]:
    out: dict[str, list[str]] = {}
    for type_name, class_name in (spec.types.table.classes if spec.types else {}).items():
        reader = spec.readers.get(class_name) or CLASS_READERS.get(class_name, "as_sent")
        if reader == "local":
            reader = "instant" if zone else "wall_clock"
        if reader != "as_sent":
            out.setdefault(reader, []).append(type_name)
    return {reader: tuple(names) for reader, names in out.items()}


def _texts(tree: Tree) -> Tree:
    kept = {part: branch if isinstance(branch, str) else _texts(branch) for part, branch in tree.items()}
    return {part: branch for part, branch in kept.items() if branch and (branch == TEXT or isinstance(branch, dict))}
