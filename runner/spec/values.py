"""The parts of a spec that say where something comes from: paths, values, conditions, images."""

from __future__ import annotations

import re

from runner.errors import Problems, nearest_or_all
from runner.spec.words import IMAGE_KINDS, IMAGE_TEXTS, Condition, Field, Image, Path, Switch, Value
from runner.yaml_text import Yaml

PATH_PART = re.compile(r'"([^"]+)"|([^."\s]+)')
FIELD_KEYS = ("at", "as", "unknown", "pattern", "dot", "count")
IMAGE_KEYS = ("at", "over", "text", "image", "names", "value", "type")
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def given(yaml: Yaml | None) -> bool:
    """Whether a key says anything: absent, null and `none` say nothing."""
    return yaml is not None and yaml.value not in (None, "none")


def optional_text(yaml: Yaml | None) -> str | None:
    return yaml.text() if given(yaml) else None


def texts(yaml: Yaml | None) -> tuple[str, ...]:
    return tuple(one.text() for one in yaml.listed()) if given(yaml) else ()


def one_of(yaml: Yaml, known: tuple[str, ...], code: str, what: str) -> str:
    text = yaml.text()
    if text not in known:
        raise yaml.error(code, f'unknown {what} "{text}"', nearest_or_all(text, known))
    return text


# --- paths


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
        raise yaml.error(
            "spec-path",
            f'cannot read the path "{text}"',
            'write parts with dots between, odd names in quotes: a."b c".d',
        )
    return tuple(parts)


def paths(yaml: Yaml | None) -> tuple[Path, ...]:
    return tuple(read_path(p) for p in yaml.listed()) if given(yaml) else ()


# --- values


def read_value(yaml: Yaml, readers: tuple[str, ...] = (), column: str = "") -> Value:
    """The places a value may come from. `readers` are the ones that it may name, `column` is what its patterns take."""
    if not given(yaml):
        return ()
    return tuple(choice for one in yaml.listed() for choice in _choices(one, readers, column))


def _choices(yaml: Yaml, readers: tuple[str, ...], column: str) -> list[Field | Switch]:
    if not isinstance(yaml.value, dict):
        return [Field(read_path(yaml))]
    if "by" in yaml.value:
        return [_switch(yaml, readers, column)]
    yaml.only(FIELD_KEYS)
    if not yaml.get("at"):
        raise yaml.error("spec-missing", 'a value needs "at": the path of the field it comes from')
    if yaml.get("as") and not readers:
        raise yaml["as"].error(
            "spec-reader",
            f"{yaml.name()} is taken as it is, and has no reader",
            "readers are for times and order numbers",
        )
    reader = one_of(yaml["as"], readers, "spec-reader", "reader") if yaml.get("as") else "text"
    pattern, behind = read_pattern(yaml["pattern"], column) if yaml.get("pattern") else (None, None)
    count = _count(yaml.get("count"), reader)
    dot = optional_text(yaml.get("dot"))
    return [Field(path, reader, texts(yaml.get("unknown")), pattern, behind, dot, count) for path in paths(yaml["at"])]


def _switch(yaml: Yaml, readers: tuple[str, ...], column: str) -> Switch:
    yaml.only(["by", "cases", "missing", "else"])
    cases = (
        {text: read_value(value, readers, column) for text, value in yaml["cases"].mapping().items()}
        if yaml.get("cases")
        else {}
    )
    missing, otherwise = (
        read_value(yaml[key], readers, column) if yaml.get(key) else () for key in ("missing", "else")
    )
    return Switch(read_value(yaml["by"]), cases, missing, otherwise)


def _count(yaml: Yaml | None, reader: str) -> int:
    if yaml is None:
        return 1
    if reader != "numbers" or yaml.text() not in list("123456789"):
        raise yaml.error(
            "spec-word", '"count" is for as: numbers, and from 1 to 9', "for instance {at: file, as: numbers, count: 2}"
        )
    return int(yaml.text())


def read_pattern(yaml: Yaml, column: str) -> tuple[str, Path | None]:
    """The regular expression of a pattern, with a group for the column it is for, and the field whose text must stand
    before it.

    >>> read_pattern(Yaml("[{tenant}.]{db_name}", {}), "db_name")
    ('^(?s)(?:.*?\\\\.)?(.*)$', None)
    >>> read_pattern(Yaml("{=meta.table}-{rowid}", {}), "rowid")
    ('^(?s)\\\\-(.*)$', ('meta', 'table'))
    """
    text, behind = yaml.text(), None
    start = re.match(r"\{=([^{}]+)\}", text)
    if start:
        behind, text = split_path(start[1], yaml), text[start.end() :]
    names = PLACEHOLDER.findall(text)
    if names.count(column) != 1 or text.count("[") != text.count("]") or any(not name.isidentifier() for name in names):
        raise yaml.error(
            "spec-pattern",
            f'the pattern "{yaml.text()}" must hold {{{column}}} once',
            "for instance [{tenant}.]{db_name}: brackets are around what may be missing",
        )
    return f"^(?s){''.join(_pattern_parts(text, column))}$", behind


def _pattern_parts(text: str, column: str) -> list[str]:
    out, last = [], PLACEHOLDER.findall(text)[-1]
    for part in re.split(r"(\{[^{}]*\}|[\[\]])", text):
        if part in ("[", "]"):
            out.append("(?:" if part == "[" else ")?")
        elif part.startswith("{"):
            some = ".*" if part[1:-1] == last else ".*?"
            out.append(f"({some})" if part[1:-1] == column else some)
        else:
            out.append(re.escape(part))
    return out


# --- conditions


def read_conditions(yaml: Yaml | None) -> tuple[Condition, ...]:
    """What must hold, all of it."""
    if yaml is None:
        return ()
    yaml.only(["is", "is_not", "has", "lacks"])
    out: list[Condition] = []
    for test in ("is", "is_not"):
        for path, wanted in yaml[test].mapping().items() if yaml.get(test) else ():
            out.append(Condition(test, split_path(path, wanted), texts(wanted)))
    for test in ("has", "lacks"):
        out += [Condition(test, path) for path in paths(yaml.get(test))]
    return tuple(out)


# --- images


def read_image(yaml: Yaml | None) -> Image | None:
    if not given(yaml):
        return None
    if not isinstance(yaml.value, dict):
        return Image(paths(yaml))
    yaml.only(IMAGE_KEYS)
    if not yaml.get("at"):
        raise yaml.error("spec-missing", 'an image needs "at": the path of the field that holds it')
    problems = Problems()
    text, completeness = None, "full"
    with problems.gathered():
        text = one_of(yaml["text"], IMAGE_TEXTS, "spec-word", "language of a text") if yaml.get("text") else None
    with problems.gathered():
        completeness = one_of(yaml["image"], IMAGE_KINDS, "spec-word", "kind of image") if yaml.get("image") else "full"
    problems.raise_if_any()
    over, names = (read_path(yaml[key]) if yaml.get(key) else None for key in ("over", "names"))
    value, type_member = (optional_text(yaml.get(key)) for key in ("value", "type"))
    if (value or type_member) and not names:
        raise yaml.error(
            "spec-missing",
            'values by position need "names": the list of their columns',
            "for instance {at: images, names: fields.name, value: value}",
        )
    return Image(paths(yaml["at"]), over, text, completeness, names, value, type_member)
