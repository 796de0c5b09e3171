"""What a format says, as data: the spec language of `formats/*.yml`, checked word by word."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from runner.errors import Problems, nearest_or_all
from runner.yaml_text import Yaml
from runner.zones import read_zone

Path = tuple[str, ...]

ROW_OPS = ("insert", "update", "delete", "snapshot")
DDL_OPS = ("create", "alter", "drop", "truncate", "rename", "index", "other")
CONTROL_OPS = ("heartbeat", "begin", "commit", "rollback", "watermark", "tombstone", "other")
OPS = {"row": ROW_OPS, "ddl": DDL_OPS, "control": CONTROL_OPS}
BARE_OPS = {op: kind for kind, ops in OPS.items() for op in ops if op != "other"}
BY_STATEMENT = "by_statement"

CLASSES = (
    "integer", "bit", "decimal", "float", "double", "boolean", "string", "enum", "set", "json", "xml", "array", "vector", "map", "range",
    "interval", "uuid", "binary", "raw", "geometry", "date", "time", "datetime", "timestamp", "zoned",
)  # fmt: skip
VALUE_READERS = ("as_sent", "latin1", "ordinal", "mask", "local")
TIME_READERS = ("epoch_s", "epoch_ms")
META = (
    "db_type", "db_version", "protocol_version", "message_id", "gtid", "scn", "rowid", "checkpoint", "source_identity", "source_system",
    "cluster", "thread", "transaction_position", "log_position", "unique_keys", "clustertime", "previous_commit_time", "connector", "server",
    "prefix", "content",
)  # fmt: skip

TEXT_COLUMNS = ("tenant", "db_name", "schema_name", "table_name", "tx_id", "statement")
TIME_COLUMNS = ("event_time", "produced_at")
MERGED = {(), ("message",), ("op",), ("op", "cases"), ("values",), ("meta",)}


@dataclass(frozen=True)
class Choice:
    """One place a value may come from; `unknown` are the texts that stand for "not known"."""

    path: Path
    reader: str = "text"
    unknown: tuple[str, ...] = ()


Value = tuple[Choice, ...]
"""The places a value may come from; the first that gives something."""


@dataclass(frozen=True)
class Condition:
    """`test` is one of is, is_not, has, lacks; `texts` are what is and is_not compare with."""

    test: str
    path: Path
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Image:
    """Where a row image lies: the first of `at` that holds a row, laid over the image at `over` if there is one."""

    at: tuple[Path, ...]
    over: Path | None = None


@dataclass(frozen=True)
class Line:
    """What a message is. `op` is None where the statement tells. The images hold for row changes only."""

    kind: str
    op: str | None
    conditions: tuple[Condition, ...] = ()
    phase: int = 1
    before: Image | None = None
    after: Image | None = None
    label: str = ""

    @property
    def own(self) -> Image | None:
        """The image that the rows are counted by: a delete has none after the change."""
        return self.before if self.op == "delete" else self.after

    @property
    def verdict(self) -> str:
        """The line in words, as compiled SQL carries it: kind, op, and what tells it from other lines with the same two."""
        return " ".join(word for word in (self.kind, self.op or BY_STATEMENT, self.label) if word)


@dataclass(frozen=True)
class Op:
    by: Value
    first: tuple[Line, ...]
    cases: Mapping[str, tuple[Line, ...]]
    missing: tuple[Line, ...]
    otherwise: tuple[Line, ...]
    empty: Line

    def lines(self) -> list[Line]:
        """All lines, each once, in the order in which a message is compared with them."""
        groups = [self.first, *self.cases.values(), self.missing, self.otherwise]
        return list(dict.fromkeys(line for group in groups for line in group))


@dataclass(frozen=True)
class TypeTable:
    """Type name, in lower case and without parameters -> class."""

    name: str
    classes: Mapping[str, str]


@dataclass(frozen=True)
class Types:
    at: tuple[Path, ...]
    table: TypeTable


@dataclass(frozen=True)
class Format:
    """A spec, resolved and checked. `columns` are the contract's plain columns that it fills."""

    name: str
    about: str
    docs: str
    numbers: str
    each: tuple[Path, ...]
    op: Op
    columns: Mapping[str, Value]
    key: tuple[Path, ...]
    types: Types | None
    readers: Mapping[str, str]
    seq: tuple[Value, ...]
    meta: Mapping[str, Value]
    drop: tuple[str, ...]
    zone: str | None
    origin: Yaml = field(repr=False, compare=False)


# --- reading ---------------------------------------------------------------------------------------------------------------------

PATH_PART = re.compile(r'"([^"]+)"|([^."\s]+)')


def read_path(yaml: Yaml) -> Path:
    """The parts of a path such as `a.b."c.d"`."""
    return split_path(yaml.text(), yaml)


def split_path(text: str, yaml: Yaml) -> Path:
    parts, position = [], 0
    while position < len(text):
        match = PATH_PART.match(text, position)
        if not match or (match.end() < len(text) and text[match.end()] != "."):
            break
        parts.append(match[1] or match[2])
        position = match.end() + 1
    if not parts or position != len(text) + 1:
        raise yaml.error("spec-path", f'cannot read the path "{text}"', 'write parts with dots between, odd names in quotes: a."b c".d')
    return tuple(parts)


def read_format(name: str, yaml: Yaml, type_table: Callable[[Yaml], TypeTable]) -> Format:
    """The format that a resolved spec describes; raises all its mistakes at once."""
    problems = Problems()
    known = [*KEYS, *TEXT_COLUMNS, *TIME_COLUMNS]
    with problems.gathered():
        yaml.only(known)
    parts: dict[str, Any] = {}
    for part, read in _readers(yaml, type_table).items():
        with problems.gathered():
            parts[part] = read()
    problems.raise_if_any()
    default_before, default_after = parts.pop("before"), parts.pop("after")
    op = _with_images(parts.pop("op"), default_before, default_after)
    spec = Format(name=name, op=op, origin=yaml, **parts)
    _check_images(spec, yaml)
    return spec


KEYS = ("about", "docs", "extends", "message", "each", "op", "before", "after", "key", "types", "values", "drop", "seq", "meta", "zone")


def _readers(yaml: Yaml, type_table: Callable[[Yaml], TypeTable]) -> dict[str, Callable[[], Any]]:
    return {
        "about": lambda: _text(yaml.get("about")) or "",
        "docs": lambda: _text(yaml.get("docs")) or "",
        "numbers": lambda: _numbers(yaml.get("message")),
        "each": lambda: _paths(yaml.get("each")),
        "op": lambda: _op(yaml),
        "before": lambda: _image(yaml.get("before")),
        "after": lambda: _image(yaml.get("after")),
        "columns": lambda: _columns(yaml),
        "key": lambda: _key(yaml.get("key")),
        "types": lambda: _types(yaml.get("types"), type_table),
        "readers": lambda: _value_readers(yaml.get("values")),
        "seq": lambda: tuple(read_value(v) for v in (given(yaml.get("seq")) and yaml["seq"].list().elements()) or ()),
        "meta": lambda: _meta(yaml.get("meta")),
        "drop": lambda: tuple(member.text() for member in yaml["drop"].listed()) if given(yaml.get("drop")) else (),
        "zone": lambda: read_zone(yaml.get("zone")),
    }


def given(yaml: Yaml | None) -> bool:
    """Whether a key says anything: absent, null and `none` say nothing."""
    return yaml is not None and yaml.value not in (None, "none")


def _text(yaml: Yaml | None) -> str | None:
    return yaml.text() if given(yaml) else None


def _paths(yaml: Yaml | None) -> tuple[Path, ...]:
    return tuple(read_path(p) for p in yaml.listed()) if given(yaml) else ()


def one_of(yaml: Yaml, known: tuple[str, ...], code: str, what: str) -> str:
    text = yaml.text()
    if text not in known:
        raise yaml.error(code, f'unknown {what} "{text}"', nearest_or_all(text, known))
    return text


def _numbers(message: Yaml | None) -> str:
    numbers = message.only(["numbers"]).get("numbers") if message else None
    return one_of(numbers, ("exact", "quoted"), "spec-word", "way of numbers") if numbers else "exact"


def read_value(yaml: Yaml, readers: tuple[str, ...] = ()) -> Value:
    return tuple(_choice(one, readers) for one in yaml.listed())


def _choice(yaml: Yaml, readers: tuple[str, ...]) -> Choice:
    if not isinstance(yaml.value, dict):
        return Choice(read_path(yaml))
    yaml.only(["at", "as", "unknown"])
    if not yaml.get("at"):
        raise yaml.error("spec-missing", 'a value needs "at": the path of the field it comes from')
    if yaml.get("as") and not readers:
        raise yaml["as"].error("spec-reader", f'{yaml.name()} is taken as it is, and has no reader', f"readers are for {', '.join(TIME_COLUMNS)}")
    reader = one_of(yaml["as"], readers, "spec-reader", "reader") if yaml.get("as") else "text"
    unknown = tuple(u.text() for u in yaml["unknown"].listed()) if yaml.get("unknown") else ()
    return Choice(read_path(yaml["at"]), reader, unknown)


def _image(yaml: Yaml | None) -> Image | None:
    if not given(yaml):
        return None
    if not isinstance(yaml.value, dict):
        return Image(_paths(yaml))
    yaml.only(["at", "over"])
    if not yaml.get("at"):
        raise yaml.error("spec-missing", 'an image needs "at": the path of the field that holds it')
    return Image(_paths(yaml["at"]), read_path(yaml["over"]) if yaml.get("over") else None)


def _columns(yaml: Yaml) -> dict[str, Value]:
    problems = Problems()
    out: dict[str, Value] = {}
    for name, readers in [*((n, ()) for n in TEXT_COLUMNS), *((n, TIME_READERS) for n in TIME_COLUMNS)]:
        if given(yaml.get(name)):
            with problems.gathered():
                out[name] = read_value(yaml[name], readers)
    problems.raise_if_any()
    return out


def _key(yaml: Yaml | None) -> tuple[Path, ...]:
    return _paths(yaml.only(["names"]).get("names")) if given(yaml) else ()


def _types(yaml: Yaml | None, type_table: Callable[[Yaml], TypeTable]) -> Types | None:
    if not given(yaml):
        return None
    yaml.only(["at", "table"])
    for key in ("at", "table"):
        if not yaml.get(key):
            raise yaml.error("spec-missing", f'types needs "{key}"', "types: {at: path of the map column -> type, table: a file in formats/types}")
    return Types(_paths(yaml["at"]), type_table(yaml["table"]))


def _value_readers(yaml: Yaml | None) -> dict[str, str]:
    problems = Problems()
    out: dict[str, str] = {}
    for name, value in yaml.mapping().items() if given(yaml) else ():
        with problems.gathered():
            if name not in CLASSES:
                raise value.error("spec-class", f'unknown class "{name}"', nearest_or_all(name, CLASSES))
            out[name] = one_of(value, VALUE_READERS, "spec-reader", "reader")
    problems.raise_if_any()
    return out


def _meta(yaml: Yaml | None) -> dict[str, Value]:
    problems = Problems()
    out: dict[str, Value] = {}
    for name, value in yaml.mapping().items() if given(yaml) else ():
        with problems.gathered():
            if name not in META:
                raise value.error("spec-meta", f'unknown meta entry "{name}"', nearest_or_all(name, META))
            if given(value):
                out[name] = read_value(value)
    problems.raise_if_any()
    return out


def _op(yaml: Yaml) -> Op:
    op = yaml.get("op")
    if not given(op) or not op.mapping().get("by"):
        raise (op or yaml).error("spec-missing", 'a format needs "op.by": the field that names the operation')
    op.only(["by", "first", "cases", "missing", "else", "empty"])
    problems = Problems()
    cases: dict[str, tuple[Line, ...]] = {}
    for text, lines in op["cases"].mapping().items() if op.get("cases") else ():
        with problems.gathered():
            if given(lines):
                cases[text] = _lines(lines)
    groups = {}
    for name in ("first", "missing", "else"):
        with problems.gathered():
            groups[name] = _lines(op[name]) if given(op.get(name)) else ()
    problems.raise_if_any()
    empty = _line(op["empty"]) if given(op.get("empty")) else Line("control", "tombstone")
    return Op(read_value(op["by"]), groups["first"], cases, groups["missing"], groups["else"], empty)


def _lines(yaml: Yaml) -> tuple[Line, ...]:
    return tuple(_line(one) for one in yaml.listed())


def _line(yaml: Yaml) -> Line:
    if not isinstance(yaml.value, dict):
        text = one_of(yaml, tuple(BARE_OPS), "spec-op", "op")
        return _by_phase(Line(BARE_OPS[text], text))
    yaml.only([*OPS, "if", "before", "after", "phase"])
    kinds = [kind for kind in OPS if yaml.get(kind)]
    if len(kinds) != 1:
        raise yaml.error("spec-line", "a line needs exactly one of row, ddl, control", "for instance {row: delete, before: old}")
    (kind,) = kinds
    ops = OPS[kind] if kind != "ddl" else (*DDL_OPS, BY_STATEMENT)
    op = one_of(yaml[kind], ops, "spec-op", f"{kind} op")
    line = Line(kind, None if op == BY_STATEMENT else op, _conditions(yaml.get("if")), before=_image(yaml.get("before")), after=_image(yaml.get("after")))
    if yaml.get("phase"):
        return replace(line, phase=("snapshot", "stream").index(one_of(yaml["phase"], ("snapshot", "stream"), "spec-word", "phase")))
    return _by_phase(line)


def _by_phase(line: Line) -> Line:
    return replace(line, phase=0) if line.op == "snapshot" else line


def _conditions(yaml: Yaml | None) -> tuple[Condition, ...]:
    if yaml is None:
        return ()
    yaml.only(["is", "is_not", "has", "lacks"])
    out: list[Condition] = []
    for test in ("is", "is_not"):
        for path, texts in yaml[test].mapping().items() if yaml.get(test) else ():
            out.append(Condition(test, split_path(path, texts), tuple(t.text() for t in texts.listed())))
    for test in ("has", "lacks"):
        out += [Condition(test, path) for path in _paths(yaml.get(test))]
    return tuple(out)


def _with_images(op: Op, before: Image | None, after: Image | None) -> Op:
    def fill(line: Line) -> Line:
        if line.kind != "row":
            return line
        takes_before, takes_after = line.op in ("update", "delete"), line.op != "delete"
        return replace(line, before=(line.before or before) if takes_before else None, after=(line.after or after) if takes_after else None)

    labels: dict[tuple[object, ...], str] = {}

    def told_apart(line: Line) -> Line:
        """The line with a number, if one before it has its words and differs in what it does."""
        words, rest = (line.kind, line.op), (line.phase, line.before, line.after)
        numbers = sum(key[:2] == words for key in labels)
        label = labels.setdefault((*words, *rest), str(numbers + 1) if numbers else "")
        return replace(line, label=label)

    def all_of(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(told_apart(fill(line)) for line in lines)

    return Op(op.by, all_of(op.first), {t: all_of(lines) for t, lines in op.cases.items()}, all_of(op.missing), all_of(op.otherwise), op.empty)


def _check_images(spec: Format, yaml: Yaml) -> None:
    problems = Problems()
    op = yaml["op"]
    groups = [(op.get("first"), spec.op.first), (op.get("missing"), spec.op.missing), (op.get("else"), spec.op.otherwise)]
    groups += [(op["cases"][text], lines) for text, lines in spec.op.cases.items()]
    for written, lines in groups:
        for line in lines:
            if written and line.kind == "row" and not line.own:
                side = "before" if line.op == "delete" else "after"
                problems.add((yaml.get(side) or written).error("spec-image", f'no image for the op "{line.op}"', f'say where the rows lie, with "{side}"'))
    problems.raise_if_any()
