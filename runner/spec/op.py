"""The key `op` of a spec: rules that say what a message is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from runner.errors import Problems, RunnerError
from runner.spec.values import given, one_of, paths, read_conditions, read_image, read_value
from runner.spec.vocabulary import BARE_OPS, BY_STATEMENT, DDL_OPS, OPS, TEXT_COLUMNS, TIME_COLUMNS, TIME_READERS
from runner.spec.words import FieldPath, Format, Image, Line, Op, Switch, Value
from runner.yaml_text import Yaml

TOMBSTONE = Line("control", "tombstone")
LINE_KEYS = ("if", "before", "after", "half", "tells")


def read_op(yaml: Yaml) -> Op:
    """Returns the key `op` of a spec; raises all its mistakes at once, and `spec-missing` if there is no `op.by`."""
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
    groups: dict[str, tuple[Line, ...]] = {}
    for name in ("first", "missing", "else", "empty"):
        with problems.gathered():
            groups[name] = _lines(op[name]) if given(op.get(name)) else ()
    problems.raise_if_any()
    empty = groups["empty"]
    if all(line.conditions for line in empty):
        empty += (TOMBSTONE,)
    return Op(read_value(op["by"]), groups["first"], cases, groups["missing"], groups["else"], empty)


def _lines(yaml: Yaml) -> tuple[Line, ...]:
    return tuple(_line(one) for one in yaml.as_list())


def _line(yaml: Yaml) -> Line:
    if not isinstance(yaml.value, dict):
        text = one_of(yaml, tuple(BARE_OPS), "spec-op", "op")
        return Line(BARE_OPS[text], text)
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
    conditions = read_conditions(yaml.get("if"))
    before, after = read_image(yaml.get("before")), read_image(yaml.get("after"))
    columns, tells = read_columns(yaml), paths(yaml.get("tells"))
    return Line(kind, op, conditions, before, after, half, ddl, columns, tells=tells)


def _op_of_line(yaml: Yaml, kind: str) -> tuple[str | None, Switch[str | None] | None]:
    if kind == "dead_letter":
        return yaml.text(), None
    ops = (*DDL_OPS, BY_STATEMENT) if kind == "ddl" else OPS[kind]
    if kind == "ddl" and isinstance(yaml.value, dict):
        yaml.only(["by", "cases", "else"])
        cases = {text: _ddl_op(op) for text, op in yaml["cases"].mapping().items()} if yaml.get("cases") else {}
        otherwise = _ddl_op(yaml["else"]) if yaml.get("else") else None
        return None, Switch(read_value(yaml["by"]), cases, otherwise, otherwise)
    op = one_of(yaml, ops, "spec-op", f"{kind} op")
    return (None if op == BY_STATEMENT else op), None


def _ddl_op(yaml: Yaml) -> str | None:
    op = one_of(yaml, (*DDL_OPS, BY_STATEMENT), "spec-op", "ddl op")
    return None if op == BY_STATEMENT else op


def read_columns(yaml: Yaml) -> dict[str, Value]:
    """Returns the values of the contract's plain columns that a spec, or one line of it, fills, by name."""
    problems = Problems()
    out: dict[str, Value] = {}
    for name, readers in [*((n, ()) for n in TEXT_COLUMNS), *((n, TIME_READERS) for n in TIME_COLUMNS)]:
        if given(yaml.get(name)):
            with problems.gathered():
                out[name] = read_value(yaml[name], readers, name)
    problems.raise_if_any()
    return out


def with_images(op: Op, before: Image | None, after: Image | None) -> Op:
    """Returns the lines of `op`. A line without images gets those of the spec, and each line a label that makes its
    verdict unique.
    """
    labels: dict[tuple[object, ...], str] = {}

    def complete(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(_labelled(_with_default_images(line, before, after), labels) for line in lines)

    return Op(
        op.by,
        complete(op.first),
        {text: complete(lines) for text, lines in op.cases.items()},
        complete(op.missing),
        complete(op.otherwise),
        complete(op.empty),
    )


def _with_default_images(line: Line, before: Image | None, after: Image | None) -> Line:
    if line.kind != "row":
        return line
    takes_before = line.op in ("update", "delete") and line.half != "after"
    takes_after = line.op != "delete" and line.half != "before"
    return replace(
        line,
        before=(line.before or before) if takes_before else None,
        after=(line.after or after) if takes_after else None,
    )


def _labelled(line: Line, labels: dict[tuple[object, ...], str]) -> Line:
    """Returns the line with a number as its label, if an earlier line has the same words and does something else."""
    words = (line.kind, line.op, line.half)
    effect = (line.before, line.after, repr(line.ddl), repr(line.columns))
    same_words = sum(key[:3] == words for key in labels)
    return replace(line, label=labels.setdefault((*words, *effect), str(same_words + 1) if same_words else ""))


def check_images(spec: Format, yaml: Yaml) -> None:
    """Raises `spec-image` for each line of a row change that has no image to take its rows from, and for each condition
    on the columns of an image at a path that is not the image of a single row.
    """
    problems = Problems()
    images = _images_of_one_row(spec)
    for condition in (c for line in spec.op.lines() for c in line.conditions if c.test == "holds"):
        if condition.path not in images:
            what = f'"{".".join(condition.path)}" is not the image of a single row'
            problems.add(RunnerError("spec-image", what, condition.path.where, 'for other fields there is "has"'))
    for written, lines in _written_lines(spec, yaml["op"]):
        for line in lines:
            if written and line.kind == "row" and not line.own:
                place = yaml.get(line.own_side) or written
                hint = f'name the field that holds the rows, with "{line.own_side}"'
                problems.add(place.error("spec-image", f'no image for the op "{line.op}"', hint))
    problems.raise_if_any()


def _images_of_one_row(spec: Format) -> set[FieldPath]:
    """Returns the paths of the images in messages in JSON that have one row each."""
    if spec.each or spec.message.encoding != "json":
        return set()
    images = (image for line in spec.op.lines() for image in (line.before, line.after))
    return {path for image in images if image and not image.text for path in image.at}


def _written_lines(spec: Format, op: Yaml) -> Iterator[tuple[Yaml | None, tuple[Line, ...]]]:
    """Returns the lines of a spec, with the keys under which they are written."""
    yield op.get("first"), spec.op.first
    yield op.get("missing"), spec.op.missing
    yield op.get("else"), spec.op.otherwise
    yield op.get("empty"), spec.op.empty
    yield from ((op["cases"][text], lines) for text, lines in spec.op.cases.items())
