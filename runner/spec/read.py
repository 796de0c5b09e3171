"""The reader of specs: a resolved spec becomes a Format, and all its mistakes are raised at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runner.errors import Problems, nearest_or_all
from runner.spec.messages import check_encoding, read_message, read_records
from runner.spec.op import check_images, read_columns, read_op, with_images
from runner.spec.values import (
    given,
    one_of,
    optional_text,
    paths,
    read_conditions,
    read_image,
    read_not_sent,
    read_path,
    read_value,
    read_zone,
    texts,
)
from runner.spec.vocabulary import (
    CLASSES,
    IMAGE_TEXTS,
    KEY_TEXTS,
    LOADS,
    META,
    ORDER_READERS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
    VALUE_READERS,
)
from runner.spec.words import Condition, FieldPath, Format, Image, Key, Switch, Types, TypeTable, Value
from runner.yaml_text import Yaml, whole_number

KEYS = (
    "about", "docs", "extends", "message", "each", "op", "before", "after", "key", "types", "values", "records", "drop",
    "not_sent", "seq", "loads", "meta", "zone", "for",
)  # fmt: skip
KEY_WORDS = ("names", "indexes", "values", "split", "columns", "at", "text", "members", "name", "flag")

TYPES_WORDS = ("at", "name", "value", "params", "names", "flags", "default", "items", "schema", "table")

TableOf = Callable[[Yaml], TypeTable]


def read_format(name: str, yaml: Yaml, type_table: TableOf) -> Format:
    """Returns the format that a resolved spec describes; raises all its mistakes at once."""
    problems = Problems()
    parts = _parts(yaml, type_table, problems)
    with problems.gathered():
        op = read_op(yaml)
    problems.raise_if_any()
    op = with_images(op, parts.pop("before"), parts.pop("after"))
    spec = Format(name=name, op=op, origin=yaml, **parts)
    check_images(spec, yaml)
    check_encoding(spec, yaml)
    return spec


def check_parts(yaml: Yaml, type_table: TableOf) -> None:
    """Raises all mistakes in a spec that has only some parts of a format, and is there to be extended by others."""
    problems = Problems()
    _parts(yaml, type_table, problems)
    problems.raise_if_any()


def _parts(yaml: Yaml, type_table: TableOf, problems: Problems) -> dict[str, Any]:
    """Returns all parts of a spec but its `op`, without those that have mistakes."""
    with problems.gathered():
        yaml.only([*KEYS, *TEXT_COLUMNS, *TIME_COLUMNS])
    parts: dict[str, Any] = {}
    for part, (key, read) in READERS.items():
        with problems.gathered():
            parts[part] = read(yaml.get(key))
    with problems.gathered():
        parts["columns"] = read_columns(yaml)
    with problems.gathered():
        parts["types"] = _types(yaml.get("types"), type_table, _is_avro(yaml))
    return parts


def _is_avro(yaml: Yaml) -> bool:
    message = yaml.get("message")
    return given(message) and isinstance(message.value, dict) and message.value.get("encoding") == "avro"


def _text(yaml: Yaml | None) -> str:
    return optional_text(yaml) or ""


def _loads(yaml: Yaml | None) -> str:
    return one_of(yaml, LOADS, "spec-word", "loads") if given(yaml) else LOADS[0]


def _order(yaml: Yaml | None) -> tuple[Value, ...]:
    return tuple(read_value(one, ORDER_READERS) for one in yaml.list().elements()) if given(yaml) else ()


def _keys(yaml: Yaml | None) -> tuple[Key, ...]:
    return tuple(map(_key, yaml.as_list())) if given(yaml) else ()


def _key(yaml: Yaml) -> Key:
    yaml.only(KEY_WORDS)
    _check_key_words(yaml)
    at, names, indexes, text, values, members = (
        yaml.get(word) for word in ("at", "names", "indexes", "text", "values", "members")
    )
    is_value = given(text) and given(values) and not given(names)
    place = values if is_value else at
    known = IMAGE_TEXTS if place else KEY_TEXTS
    language = one_of(text, known, "spec-word", "language of a text") if text else None
    return Key(
        _members_of_texts(names) if language else paths(names),
        read_path(indexes) if given(indexes) else None,
        None if place else language,
        texts(yaml.get("columns")),
        () if is_value else paths(values),
        optional_text(yaml.get("split")),
        Image(paths(place), text=language) if place else None,
        is_value,
        read_path(members) if given(members) else None,
        optional_text(yaml.get("name")),
        optional_text(yaml.get("flag")),
    )


def _check_key_words(yaml: Yaml) -> None:
    """Raises `spec-missing` for words of a key that need other words."""
    has = {word: given(yaml.get(word)) for word in KEY_WORDS}
    if has["names"] + has["columns"] + has["members"] != 1:
        raise yaml.error(
            "spec-missing",
            'a key needs exactly one of "names", "columns", "members"',
            "for instance key: {names: pkNames}",
        )
    if yaml.get("at") and not (has["at"] and has["columns"]):
        raise yaml.error(
            "spec-missing",
            '"at" and "columns" go together',
            "for instance {columns: [id], at: where, text: mongo_shell}",
        )
    if has["values"] and has["columns"] and not (has["text"] and len(texts(yaml["columns"])) == 1):
        hint = "for instance {columns: [_id], values: $key.id, text: extended_json}"
        raise yaml.error("spec-missing", '"values" of "columns" need "text", and are of one column', hint)
    if has["values"] and not has["columns"] and not has["split"]:
        hint = 'for instance {names: keys, values: key_values, split: ","}'
        raise yaml.error("spec-missing", '"values" need "split": what stands between them', hint)
    if has["split"] and not has["names"]:
        hint = 'for instance {names: keys, split: ","}'
        raise yaml.error("spec-missing", '"split" needs "names": the text that it splits', hint)
    if has["name"] and not has["members"]:
        hint = "for instance {members: columns, name: name}"
        raise yaml.error("spec-missing", '"name" needs "members": the list of objects', hint)
    if has["flag"] and not has["members"]:
        hint = "for instance {members: columns, name: name, flag: isKey}"
        raise yaml.error("spec-missing", '"flag" needs "members": the objects that it is in', hint)
    if has["indexes"] and not has["names"]:
        raise yaml.error(
            "spec-missing",
            '"indexes" need "names": the list that they count in',
            "for instance {names: fields.name, indexes: keys}",
        )


def _members_of_texts(yaml: Yaml | None) -> tuple[FieldPath, ...]:
    """Returns paths whose last part is a member of the document in the text before it; raises `spec-path`."""
    problems = Problems()
    for one in yaml.as_list() if given(yaml) else ():
        with problems.gathered():
            if len(read_path(one)) < 2:
                raise one.error(
                    "spec-path",
                    f'with "text", the path "{one.text()}" needs at least two parts',
                    "its last part is a member of the document in the text, for instance {names: pk.ids, text: json}",
                )
    problems.raise_if_any()
    return paths(yaml)


def _types(yaml: Yaml | None, type_table: TableOf, is_avro: bool) -> Types | None:
    if not given(yaml):
        return None
    yaml.only(TYPES_WORDS)
    if not yaml.get("table") and not is_avro:
        raise yaml.error(
            "spec-missing",
            'types needs "table"',
            "types: {at: path of the map column -> type, table: a file in formats/types}",
        )
    if yaml.get("schema") and not is_avro:
        raise yaml["schema"].error("spec-conflict", "only messages in Avro have schemas that name types")
    if yaml.get("schema") and (yaml.get("name") or not yaml.get("at")):
        what = 'types with "schema" needs "at", the images, and no "name"'
        raise yaml["schema"].error("spec-conflict", what, "for instance {at: [after, before], schema: connect.name}")
    if yaml.get("name") and not yaml.get("value"):
        raise yaml.error(
            "spec-missing",
            'types with "name" needs "value" too',
            "for instance {at: columns, name: name, value: type, table: FILE}",
        )
    names = read_path(one) if given(one := yaml.get("names")) else None
    return Types(
        paths(yaml.get("at")),
        optional_text(yaml.get("name")),
        texts(yaml.get("value")),
        _tables(yaml["table"], type_table) if yaml.get("table") else None,
        paths(yaml.get("params")),
        names,
        *_flags(yaml.get("flags")),
        optional_text(yaml.get("default")) or None,
        optional_text(yaml.get("items")) or None,
        texts(yaml.get("schema")),
    )


def _flags(yaml: Yaml | None) -> tuple[str | None, tuple[tuple[int, str], ...]]:
    """Returns the member with a number, and the words for its bits."""
    if not given(yaml):
        return None, ()
    yaml.only(["at", "words"])
    words = yaml["words"].mapping().items() if yaml.get("words") else []
    if not (yaml.get("at") and words):
        hint = "for instance flags: {at: f, words: {128: unsigned}}"
        raise yaml.error("spec-missing", '"flags" need "at", the member with a number, and "words" for its bits', hint)
    return yaml["at"].text(), tuple((_bit(value, word), word.text()) for value, word in words)


def _bit(value: str, word: Yaml) -> int:
    """Returns the position of the one bit of a power of two, from 0."""
    number = whole_number(value)
    if number is None or number.bit_count() != 1:
        raise word.error("spec-word", f'"{value}" is not the value of one bit', "1, 2, 4, 8 and so on")
    return number.bit_length() - 1


def _tables(yaml: Yaml, type_table: TableOf) -> Switch[TypeTable | None]:
    if not isinstance(yaml.value, dict):
        table = type_table(yaml)
        return Switch((), {}, table, table)
    yaml.only(["by", "cases", "else"])
    cases = (
        {text: type_table(table) if given(table) else None for text, table in yaml["cases"].mapping().items()}
        if yaml.get("cases")
        else {}
    )
    by, otherwise = read_value(yaml["by"]), type_table(yaml["else"]) if given(yaml.get("else")) else None
    return Switch(by, cases, otherwise, otherwise)


def _value_readers(yaml: Yaml | None) -> dict[str, tuple[str, ...]]:
    problems = Problems()
    out: dict[str, tuple[str, ...]] = {}
    for name, value in yaml.mapping().items() if given(yaml) else ():
        with problems.gathered():
            if name not in CLASSES:
                raise value.error("spec-class", f'unknown class "{name}"', nearest_or_all(name, CLASSES))
            if given(value):
                out[name] = tuple(one_of(one, VALUE_READERS, "spec-reader", "reader") for one in value.as_list())
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
                out[name] = read_value(value, (), name)
    problems.raise_if_any()
    return out


def _drops(yaml: Yaml | None) -> tuple[tuple[str, tuple[Condition, ...]], ...]:
    return tuple(map(_dropped, yaml.as_list())) if given(yaml) else ()


def _dropped(yaml: Yaml) -> tuple[str, tuple[Condition, ...]]:
    """Returns the name of a member of rows that is no column, and the conditions under which it is none."""
    if not isinstance(yaml.value, dict):
        return yaml.text(), ()
    yaml.only(["name", "if"])
    if not yaml.get("name"):
        raise yaml.error("spec-missing", 'an entry of "drop" needs a "name"')
    return yaml["name"].text(), read_conditions(yaml.get("if"))


# Part of a format -> the key of a spec that says it, and the reader of the key's value, which may be absent.
READERS: dict[str, tuple[str, Callable[[Yaml | None], Any]]] = {
    "about": ("about", _text),
    "docs": ("docs", _text),
    "message": ("message", read_message),
    "records": ("records", read_records),
    "each": ("each", paths),
    "before": ("before", read_image),
    "after": ("after", read_image),
    "key": ("key", _keys),
    "readers": ("values", _value_readers),
    "seq": ("seq", _order),
    "loads": ("loads", _loads),
    "meta": ("meta", _meta),
    "drop": ("drop", _drops),
    "not_sent": ("not_sent", read_not_sent),
    "zone": ("zone", read_zone),
    "meant": ("for", read_conditions),
}
