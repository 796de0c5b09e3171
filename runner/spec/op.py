"""The key `op` of a spec: which messages are what."""

from __future__ import annotations

from dataclasses import replace

from runner.errors import Problems
from runner.spec.values import given, one_of, read_conditions, read_image, read_value
from runner.spec.words import (
    BARE_OPS,
    BY_STATEMENT,
    DDL_OPS,
    OPS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
    TIME_READERS,
    DdlSwitch,
    Format,
    Image,
    Line,
    Op,
    Value,
)
from runner.yaml_text import Yaml

LINE_KEYS = ("if", "before", "after", "half", "phase")


def read_op(yaml: Yaml) -> Op:
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
    yaml.only([*OPS, "dead_letter", *LINE_KEYS, *TEXT_COLUMNS, *TIME_COLUMNS])
    kinds = [kind for kind in (*OPS, "dead_letter") if yaml.get(kind)]
    if len(kinds) != 1:
        raise yaml.error(
            "spec-line",
            "a line needs exactly one of row, ddl, control, dead_letter",
            "for instance {row: delete, before: old}",
        )
    (kind,) = kinds
    op, ddl = _op_of_line(yaml[kind], kind)
    half = one_of(yaml["half"], ("before", "after"), "spec-word", "half") if yaml.get("half") else None
    if half and op != "update":
        raise yaml["half"].error("spec-line", "only an update has halves", "for instance {row: update, half: before}")
    images = {side: read_image(yaml.get(side)) for side in ("before", "after")}
    line = Line(kind, op, read_conditions(yaml.get("if")), **images, half=half, ddl=ddl, columns=read_columns(yaml))
    if yaml.get("phase"):
        return replace(
            line,
            phase=("snapshot", "stream").index(one_of(yaml["phase"], ("snapshot", "stream"), "spec-word", "phase")),
        )
    return _by_phase(line)


def _op_of_line(yaml: Yaml, kind: str) -> tuple[str | None, DdlSwitch | None]:
    if kind == "dead_letter":
        return yaml.text(), None
    ops = (*DDL_OPS, BY_STATEMENT) if kind == "ddl" else OPS[kind]
    if kind == "ddl" and isinstance(yaml.value, dict):
        yaml.only(["by", "cases", "else"])
        cases = {text: _ddl_op(op) for text, op in yaml["cases"].mapping().items()} if yaml.get("cases") else {}
        return None, DdlSwitch(read_value(yaml["by"]), cases, _ddl_op(yaml["else"]) if yaml.get("else") else None)
    op = one_of(yaml, ops, "spec-op", f"{kind} op")
    return (None if op == BY_STATEMENT else op), None


def _ddl_op(yaml: Yaml) -> str | None:
    op = one_of(yaml, (*DDL_OPS, BY_STATEMENT), "spec-op", "ddl op")
    return None if op == BY_STATEMENT else op


def _by_phase(line: Line) -> Line:
    return replace(line, phase=0) if line.op == "snapshot" else line


def read_columns(yaml: Yaml) -> dict[str, Value]:
    """The contract's plain columns that a spec or a line of it fills."""
    problems = Problems()
    out: dict[str, Value] = {}
    for name, readers in [*((n, ()) for n in TEXT_COLUMNS), *((n, TIME_READERS) for n in TIME_COLUMNS)]:
        if given(yaml.get(name)):
            with problems.gathered():
                out[name] = read_value(yaml[name], readers, name)
    problems.raise_if_any()
    return out


def with_images(op: Op, before: Image | None, after: Image | None) -> Op:
    """The lines with the images of the spec where they have none of their own, and told apart by their verdicts."""

    def fill(line: Line) -> Line:
        if line.kind != "row":
            return line
        takes_before = line.op in ("update", "delete") and line.half != "after"
        takes_after = line.op != "delete" and line.half != "before"
        return replace(
            line,
            before=(line.before or before) if takes_before else None,
            after=(line.after or after) if takes_after else None,
        )

    labels: dict[tuple[object, ...], str] = {}

    def told_apart(line: Line) -> Line:
        """The line with a number, if one before it has its words and differs in what it does."""
        words, rest = (
            (line.kind, line.op, line.half),
            (line.phase, line.before, line.after, repr(line.ddl), repr(line.columns)),
        )
        numbers = sum(key[:3] == words for key in labels)
        label = labels.setdefault((*words, *rest), str(numbers + 1) if numbers else "")
        return replace(line, label=label)

    def all_of(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(told_apart(fill(line)) for line in lines)

    return Op(
        op.by,
        all_of(op.first),
        {t: all_of(lines) for t, lines in op.cases.items()},
        all_of(op.missing),
        all_of(op.otherwise),
        op.empty,
    )


def check_images(spec: Format, yaml: Yaml) -> None:
    """Raises if a line of a row change has nowhere to take its rows from."""
    problems = Problems()
    op = yaml["op"]
    groups = [
        (op.get("first"), spec.op.first),
        (op.get("missing"), spec.op.missing),
        (op.get("else"), spec.op.otherwise),
    ]
    groups += [(op["cases"][text], lines) for text, lines in spec.op.cases.items()]
    for written, lines in groups:
        for line in lines:
            if written and line.kind == "row" and not line.own:
                side = "before" if line.op == "delete" or line.half == "before" else "after"
                problems.add(
                    (yaml.get(side) or written).error(
                        "spec-image", f'no image for the op "{line.op}"', f'say where the rows lie, with "{side}"'
                    )
                )
    problems.raise_if_any()
