"""The parts of a spec that say where a value comes from: paths, values, conditions, images; and time zones."""

from __future__ import annotations

import re
import zoneinfo
from base64 import b64encode
from hashlib import md5
from json import dumps
from typing import TypeGuard
from uuid import UUID

from runner.errors import Problems, did_you_mean, nearest_or_all
from runner.spec.vocabulary import IMAGE_KINDS, IMAGE_TEXTS, WHOLE
from runner.spec.words import Condition, Field, FieldPath, Image, Switch, Value
from runner.yaml_text import Yaml, whole_number

PATH_PART = re.compile(r'"([^"]+)"|([^."\s]+)')
FIELD_KEYS = ("at", "as", "unknown", "pattern", "dot", "count", "shift")
IMAGE_KEYS = ("at", "over", "text", "image", "names", "value", "type", "name", "prefix", "removed")
PATHS_OF_IMAGES = ("over", "names", "removed")
# Tenant, database, schema and table.
MOST_PARTS = 4
OFFSET = re.compile(r"(?:UTC|GMT|UT)?[+-](?:(?:0[0-9]|1[0-7]):[0-5][0-9]|18:00)")
# Most names of three letters are abbreviations that stand for several zones, such as CST: only these are allowed.
ZONE = re.compile(r"UTC|GMT|UCT|PRC|ROC|ROK|[CEMW]ET|(?![A-Z]{3}$)[A-Z][A-Za-z0-9_+\-]*(/[A-Za-z0-9_+\-]+)*")
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def given(yaml: Yaml | None) -> TypeGuard[Yaml]:
    """Returns True if a key has a value: the key is not absent, null or `none`."""
    return yaml is not None and yaml.value not in (None, "none")


def optional_text(yaml: Yaml | None) -> str | None:
    """Returns the text of a key; None if it has no value."""
    return yaml.text() if given(yaml) else None


def texts(yaml: Yaml | None) -> tuple[str, ...]:
    """Returns the texts of a key that holds one text or a list of them."""
    return tuple(one.text() for one in yaml.as_list()) if given(yaml) else ()


def one_of(yaml: Yaml, known: tuple[str, ...], code: str, what: str) -> str:
    """Returns the text, which must be one of the known words. Otherwise raises an error with `code`, in which `what`
    names the kind of word.
    """
    text = yaml.text()
    if text not in known:
        raise yaml.error(code, f'unknown {what} "{text}"', nearest_or_all(text, known))
    return text


def read_zone(yaml: Yaml | None) -> str | None:
    """Returns an offset, or the name of a zone that exists; None if absent, null or `none`. Raises `spec-zone`.

    >>> [read_zone(Yaml(text, {})) for text in ("+08:00", "GMT+08:00", "UTC", "PRC", "Asia/Shanghai", "none")]
    ['+08:00', 'GMT+08:00', 'UTC', 'PRC', 'Asia/Shanghai', None]
    """
    if not given(yaml):
        return None
    text = yaml.text()
    if OFFSET.fullmatch(text) or (ZONE.fullmatch(text) and _is_zone(text)):
        return text
    hint = did_you_mean(text, zoneinfo.available_timezones()) if "/" in text else ""
    raise yaml.error(
        "spec-zone",
        f'"{text}" is not a time zone',
        hint or 'write an IANA name such as Asia/Shanghai or an offset such as "+08:00"; abbreviations are ambiguous',
    )


def _is_zone(name: str) -> bool:
    try:
        return name != "Factory" and bool(zoneinfo.ZoneInfo(name))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False


def read_not_sent(yaml: Yaml | None) -> dict[str, tuple[str, ...]]:
    """Returns the texts that mean "not sent", by the type of their column; the empty type is any type.

    >>> read_not_sent(Yaml(["?", {"types": ["json"], "texts": ["SET(*"]}], {}))
    {'': ('?',), 'json': ('SET(*',)}
    """
    out: dict[str, tuple[str, ...]] = {}
    for one in yaml.as_list() if given(yaml) else ():
        types: tuple[str, ...] = ("",)
        if not isinstance(one.value, dict):
            found: tuple[str, ...] = (one.text(),)
        elif one.get("placeholder"):
            one.only(["placeholder"])
            found = placeholders(one["placeholder"].text())
        else:
            one.only(["types", "texts"])
            types, found = texts(one.get("types")), texts(one.get("texts"))
            if not types or not found:
                hint = 'for instance {placeholder: __unavailable}, or {types: [json], texts: ["JSON_SET(*"]}'
                raise one.error(
                    "spec-missing", 'an entry of "not_sent" needs "placeholder", or "types" and "texts"', hint
                )
        for name in types:
            out[name.lower()] = out.get(name.lower(), ()) + found
    return out


def placeholders(text: str) -> tuple[str, ...]:
    """Returns the forms of a text that a tool writes in place of a value, in the JSON that the type of the column asks
    for: the text; its bytes in base64, in hexadecimal and as a list of numbers; a list of one of these, or of one UUID,
    which is made of the bytes by MD5; an object of one member.

    >>> placeholders("?")  # doctest: +NORMALIZE_WHITESPACE
    ('?', 'Pw==', '["?"]', '3f', '{"?":"?"}', '[63]', '["Pw=="]', '["3f"]', '["d1457b72-c3fb-323a-a671-125aef3eab5d"]')
    """
    sent = text.encode()
    as_uuid = str(UUID(bytes=md5(sent, usedforsecurity=False).digest(), version=3))
    in_base64, in_hex = b64encode(sent).decode(), sent.hex()
    forms = (text, in_base64, [text], in_hex, {text: text}, [*sent], [in_base64], [in_hex], [as_uuid])
    return tuple(
        one if isinstance(one, str) else dumps(one, ensure_ascii=False, separators=(",", ":")) for one in forms
    )


# --- paths


def read_path(yaml: Yaml) -> FieldPath:
    """Returns the parts of a path such as `a.b."c.d"`."""
    return split_path(yaml.text(), yaml)


def read_table_name(yaml: Yaml) -> tuple[str, ...]:
    """Returns the parts of a table's name; raises `spec-path` if there are too many parts or they cannot be read."""
    parts = tuple(read_path(yaml))
    if len(parts) > MOST_PARTS:
        raise yaml.error(
            "spec-path",
            f'the table name "{yaml.text()}" has {len(parts)} parts',
            'it may have four: tenant, database, schema, table; put a part with dots in quotes: shop."v1.orders"',
        )
    return parts


def split_path(text: str, yaml: Yaml) -> FieldPath:
    """Returns the parts of a path that is written in the text of `yaml`; raises `spec-path` at its place."""
    if text == WHOLE:
        return FieldPath((WHOLE,), yaml.where())
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
    return FieldPath(parts, yaml.where())


def paths(yaml: Yaml | None) -> tuple[FieldPath, ...]:
    """Returns the paths of a key that holds one path or a list of them."""
    return tuple(read_path(p) for p in yaml.as_list()) if given(yaml) else ()


# --- values


def read_value(yaml: Yaml, readers: tuple[str, ...] = (), column: str = "") -> Value:
    """Returns the places a value may come from. `readers` are the readers that a spec may name here; `column` is the
    placeholder whose part of the text its patterns take.
    """
    if not given(yaml):
        return ()
    return tuple(choice for one in yaml.as_list() for choice in _choices(one, readers, column))


def _choices(yaml: Yaml, readers: tuple[str, ...], column: str) -> list[Field | Switch[Value]]:
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
            f"{yaml.name()} is taken as it is, without a reader",
            "readers are for times and order numbers",
        )
    reader = one_of(yaml["as"], readers, "spec-reader", "reader") if yaml.get("as") else "text"
    pattern, behind, may_lack = read_pattern(yaml["pattern"], column) if yaml.get("pattern") else (None, None, False)
    count = _count(yaml.get("count"), reader)
    dot, shift = optional_text(yaml.get("dot")), _shift(yaml.get("shift"), reader)
    unknown = texts(yaml.get("unknown"))
    return [Field(path, reader, unknown, pattern, behind, may_lack, dot, count, shift) for path in paths(yaml["at"])]


def _switch(yaml: Yaml, readers: tuple[str, ...], column: str) -> Switch[Value]:
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
    if reader not in ("numbers", "last_numbers") or yaml.text() not in list("123456789"):
        hint = "for instance {at: file, as: numbers, count: 2}"
        raise yaml.error("spec-word", '"count" is for as: numbers or last_numbers, and from 1 to 9', hint)
    return int(yaml.text())


def _shift(yaml: Yaml | None, reader: str) -> int:
    if yaml is None:
        return 0
    number = whole_number(yaml.text())
    if not reader.startswith("epoch_") or number is None or not 0 < number < 63:
        hint = "for instance {at: ts, as: epoch_ms, shift: 18}"
        raise yaml.error("spec-word", '"shift" is a number of bits from 1 to 62, for readers of time since 1970', hint)
    return number


def read_pattern(yaml: Yaml, column: str) -> tuple[str, FieldPath | None, bool]:
    """Returns the regular expression of a pattern, with a group for the column that it is for; the field whose text
    comes before the part that the pattern matches; and True if this text may be missing. Raises `spec-pattern`.

    >>> read_pattern(Yaml("[{tenant}.]{db_name}", {}), "db_name")
    ('^(?s)(?:.*?\\\\.)?(.*)$', None, False)
    >>> from pathlib import Path
    >>> from runner.errors import Where
    >>> read_pattern(Yaml("{=meta.table}-{rowid}", {(): Where(Path("a.yml"))}), "rowid")
    ('^(?s)\\\\-(.*)$', ('meta', 'table'), False)
    """
    text, behind = yaml.text(), None
    start = re.match(r"(\[?)\{=([^{}]+)\}", text)
    may_lack = bool(start and start[1])
    if start:
        behind, text = split_path(start[2], yaml), text[start.end() :].replace("]", "", len(start[1]))
    names = PLACEHOLDER.findall(text)
    uneven = yaml.text().count("[") != yaml.text().count("]")
    if names.count(column) != 1 or uneven or any(not name.isidentifier() for name in names):
        raise yaml.error(
            "spec-pattern",
            f'the pattern "{yaml.text()}" must hold {{{column}}} once',
            "for instance [{tenant}.]{db_name}; put brackets around what may be missing",
        )
    return f"^(?s){''.join(_pattern_parts(text, column))}$", behind, may_lack


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
    """Returns the conditions of an `if`, all of which must hold."""
    if yaml is None:
        return ()
    yaml.only(["is", "is_not", "has", "lacks", "holds"])
    out: list[Condition] = []
    for test in ("is", "is_not"):
        for path, wanted in yaml[test].mapping().items() if yaml.get(test) else ():
            out.append(Condition(test, split_path(path, wanted), texts(wanted)))
    for test in ("has", "lacks", "holds"):
        out += [Condition(test, path) for path in paths(yaml.get(test))]
    return tuple(out)


# --- images


def read_image(yaml: Yaml | None) -> Image | None:
    """Returns the place and form of an image; None if the key has no value. Raises `spec-missing` and `spec-word`."""
    if not given(yaml):
        return None
    if not isinstance(yaml.value, dict):
        return Image(paths(yaml))
    yaml.only(IMAGE_KEYS)
    if not given(yaml.get("at")):
        raise yaml.error("spec-missing", 'an image needs "at": the path of the field that holds it')
    _check_image_words(yaml)
    text, completeness = _image_words(yaml)
    over, names, removed = (read_path(one) if given(one := yaml.get(key)) else None for key in PATHS_OF_IMAGES)
    value, type_member, name, prefix = (optional_text(yaml.get(key)) for key in ("value", "type", "name", "prefix"))
    at = paths(yaml.get("at"))
    return Image(at, over, text, completeness, names, value, type_member, name, prefix, removed)


def _check_image_words(yaml: Yaml) -> None:
    """Raises `spec-missing` and `spec-word` for words of an image that need other words, or contradict each other."""
    has = {key: given(yaml.get(key)) for key in IMAGE_KEYS}
    if has["type"] and not has["names"]:
        raise yaml.error(
            "spec-missing",
            'values by position need "names": the list of their columns',
            "for instance {at: images, names: fields.name, value: value}",
        )
    if has["name"] and not has["value"] and not has["text"]:
        hint = "for instance {at: columns, name: name, value: value}"
        raise yaml.error("spec-missing", '"name" needs "value": the member that holds a value', hint)
    ways = [key for key in ("text", "names", "name", "prefix") if has[key]] + ["value"] * (
        has["value"] and not has["names"] and not has["name"]
    )
    if len(ways) > 1 and ways != ["text", "name"]:
        raise yaml.error("spec-word", f'"{ways[0]}" and "{ways[1]}" are different ways to write an image', "keep one")
    if has["removed"] and not has["text"]:
        raise yaml["removed"].error("spec-missing", '"removed" needs "text"', "for patches that are texts")


def _image_words(yaml: Yaml) -> tuple[str | None, str]:
    """Returns the language of an image, None if the image is not a text, and its completeness."""
    problems = Problems()
    text, completeness = None, "full"
    with problems.gathered():
        if language := yaml.get("text"):
            text = one_of(language, IMAGE_TEXTS, "spec-word", "language of a text")
    with problems.gathered():
        if kind := yaml.get("image"):
            completeness = one_of(kind, IMAGE_KINDS, "spec-word", "kind of image")
    problems.raise_if_any()
    return text, completeness
