"""The keys `message` and `records` of a spec: the encoding of messages, and the text of values that are records."""

from __future__ import annotations

import os
from pathlib import Path

from runner.errors import Problems, RunnerError, Where, did_you_mean, from_here, nearest_or_all
from runner.files import read_text
from runner.functions.avro.layout import RecordEntry
from runner.functions.avro.schema import SchemaError, parse_schema
from runner.spec.values import given, one_of, paths, read_path, texts
from runner.spec.vocabulary import CLASSES, ENCODINGS, FRAMINGS, LENGTHS, NUMBERS, PARTS, Frames
from runner.spec.words import FieldPath, Format, Message
from runner.yaml_text import Yaml, whole_number

MESSAGE_KEYS = ("encoding", "numbers", "schema", "framing", "skip_bytes", "optional", "root", "batch", "frames")
# Words that are for messages in one encoding only.
ENCODING_OF = {
    "schema": "avro",
    "skip_bytes": "avro",
    "optional": "avro",
    "numbers": "json",
    "root": "json",
    "batch": "json",
    "frames": "json",
}
FRAMES_KEYS = ("length_bytes", "key_starts", "value_starts")
RECORD_KEYS = (
    "class", "text", "bytes", "charset", "charsets", "srid", "parts", "labels", "length", "is_null", "not_sent",
)  # fmt: skip
MAX_SKIP_BYTES = 1024


def read_message(yaml: Yaml | None) -> Message:
    """Returns how messages are encoded. Paths of schema files are relative to the spec that names them."""
    if not given(yaml):
        return Message()
    yaml.only(MESSAGE_KEYS)
    encoding = one_of(yaml["encoding"], ENCODINGS, "spec-word", "encoding") if yaml.get("encoding") else "json"
    numbers = one_of(yaml["numbers"], NUMBERS, "spec-word", "way of numbers") if yaml.get("numbers") else "exact"
    for key, needed in ENCODING_OF.items():
        if given(yaml.get(key)) and encoding != needed:
            raise yaml[key].error("spec-word", f'"{key}" works only with encoding: {needed}')
    skip_bytes, number_bytes = _skip_bytes(yaml.get("skip_bytes")), _number_bytes(yaml.get("framing"))
    if number_bytes and skip_bytes:
        raise yaml["skip_bytes"].error("spec-word", '"skip_bytes" and "framing" do not go together', "skip_bytes: none")
    if given(yaml.get("batch")) and given(yaml.get("frames")):
        raise yaml["batch"].error("spec-word", '"batch" and "frames" do not go together', "batch: none")
    if number_bytes and (other := next((yaml[one] for one in ("batch", "frames") if given(yaml.get(one))), None)):
        raise other.error("spec-word", f'"{other.name()}" and "framing" do not go together', f"{other.name()}: none")
    return Message(
        encoding,
        numbers,
        read_schemas(yaml.get("schema")),
        skip_bytes,
        paths(yaml.get("optional")),
        paths(yaml.get("root")),
        read_path(yaml["batch"]) if given(yaml.get("batch")) else None,
        _frames(yaml.get("frames")),
        number_bytes,
    )


def read_schemas(yaml: Yaml | None) -> tuple[str, ...]:
    """Returns the texts of the schema files that a YAML names, with paths relative to that YAML."""
    problems = Problems()
    out: list[str] = []
    for one in yaml.as_list() if given(yaml) else ():
        with problems.gathered():
            out.append(read_schema(one.where().path.parent / one.text(), one.where()))
    problems.raise_if_any()
    return tuple(out)


def read_schema(path: Path, where: Where | None) -> str:
    """Returns the text of a file that is a schema; raises `schema-file` or `schema-unusable`."""
    # `path.is_file()` would fail for a name that is too long.
    if os.path.isdir(path):
        raise RunnerError("schema-file", f'"{from_here(path)}" is a folder', where)
    if not os.path.isfile(path):
        near = did_you_mean(
            path.name, [other.name for other in path.parent.glob("*.avsc")] if os.path.isdir(path.parent) else []
        )
        raise RunnerError("schema-file", f'there is no file "{from_here(path)}"', where, near)
    text = read_text(path)
    try:
        parse_schema(text)
    except SchemaError as e:
        raise RunnerError(
            "schema-unusable",
            f'"{path.name}" is not a schema that can be used: {e}',
            where,
            "give a file .avsc that describes the record of a message",
        ) from None
    return text


def _number_bytes(yaml: Yaml | None) -> int:
    return FRAMINGS[one_of(yaml, tuple(FRAMINGS), "spec-word", "framing")] if given(yaml) else 0


def _frames(yaml: Yaml | None) -> Frames | None:
    """Returns how key and value are divided into frames; None if they are not divided."""
    if not given(yaml):
        return None
    yaml.only(FRAMES_KEYS)
    if not yaml.get("length_bytes"):
        raise yaml.error("spec-missing", 'frames need "length_bytes"', "frames: {length_bytes: 8}")
    length_bytes = int(one_of(yaml["length_bytes"], LENGTHS, "spec-word", "number of bytes"))
    return Frames(_hex(yaml.get("key_starts")), _hex(yaml.get("value_starts")), length_bytes)


def _hex(yaml: Yaml | None) -> str:
    if not given(yaml):
        return ""
    try:
        return bytes.fromhex(yaml.text()).hex()
    except ValueError:
        hint = 'for instance "0000000000000001"'
        raise yaml.error("spec-word", f'"{yaml.text()}" is not bytes in hexadecimal', hint) from None


def _skip_bytes(yaml: Yaml | None) -> int:
    if not given(yaml):
        return 0
    number = whole_number(yaml.text())
    if number is None or number > MAX_SKIP_BYTES:
        raise yaml.error(
            "spec-word",
            f'"skip_bytes" is a number of bytes up to {MAX_SKIP_BYTES}, not "{yaml.text()}"',
            "for instance 5, for one byte and the number of a schema",
        )
    return number


def check_encoding(spec: Format, yaml: Yaml) -> None:
    """Raises `spec-word` for each word of the spec that does not work with its encoding."""
    problems = Problems()
    images = [image for line in spec.op.lines() for image in (line.before, line.after) if image]
    used = {word: any(getattr(image, word) for image in images) for word in ("names", "name", "prefix", "text", "type")}
    used |= {word: any(getattr(key, word) for key in spec.key) for word in ("indexes", "members")}
    used |= {word: bool(getattr(spec.message, word)) for word in ("root", "batch", "frames")}
    used |= {"records": bool(spec.records), "value": any(image.has_members for image in images)}
    used |= {"flags": bool(spec.types and spec.types.flags)}
    wrong: list[tuple[str, str]] = []
    if spec.message.encoding == "avro":
        wrong += [
            (word, "does not work with encoding: avro")
            for word in ("text", "name", "prefix", "members", "value", "flags")
        ]
        alone = ["names"]
    else:
        wrong += [(word, "works only with encoding: avro") for word in ("records", "indexes", "type")]
        alone = ["names", "name", "prefix", "value", "root", "batch", "frames"]
    if spec.each:
        wrong += [(word, 'does not work with "each"') for word in alone]
    for word, why in wrong:
        if used[word]:
            problems.add((yaml.get(word) or _key_with(yaml, word)).error("spec-word", f'"{word}" {why}'))
    problems.raise_if_any()


def _key_with(yaml: Yaml, word: str) -> Yaml:
    """Returns the key of the spec that contains a word; the spec itself if the word is deeper in it."""
    return next(
        (
            one
            for key, one in yaml.items()
            if any(isinstance(entry.value, dict) and word in entry.value for entry in one.as_list())
        ),
        yaml,
    )


# --- records


def read_records(yaml: Yaml | None) -> dict[str, RecordEntry]:
    """Returns, for each name of a record or enum, how its values become text."""
    problems = Problems()
    out: dict[str, RecordEntry] = {}
    for name, entry in _members(yaml):
        with problems.gathered():
            if given(entry):
                out[name] = _record(entry)
    problems.raise_if_any()
    return out


def _record(yaml: Yaml) -> RecordEntry:
    yaml.only(RECORD_KEYS)
    is_null, not_sent = texts(yaml.get("is_null")), texts(yaml.get("not_sent"))
    sources = [key for key in ("text", "bytes", "parts") if given(yaml.get(key))]
    if len(sources) != (0 if is_null or not_sent else 1):
        raise yaml.error(
            "spec-missing",
            f'{yaml.name()} needs exactly one of "text", "bytes", "parts"',
            "or, for an enum, is_null and not_sent",
        )
    charset = _path(yaml.get("charset"))
    if bool(charset) != bool(yaml.get("charsets")):
        raise yaml.error(
            "spec-missing", '"charset" and "charsets" go together', "for instance charsets: {utf8mb4: utf_8}"
        )
    return RecordEntry(
        classes=_classes(yaml),
        text=_path(yaml.get("text")),
        bytes=_path(yaml.get("bytes")),
        charset=charset,
        charsets={name: _codec(codec) for name, codec in _members(yaml.get("charsets") if charset else None)},
        srid=_path(yaml.get("srid")),
        parts={_part(name, path): read_path(path) for name, path in _members(yaml.get("parts"))},
        labels=_path(yaml.get("labels")),
        length=_path(yaml.get("length")),
        is_null=is_null,
        not_sent=not_sent,
    )


def _members(yaml: Yaml | None) -> list[tuple[str, Yaml]]:
    return yaml.mapping().items() if given(yaml) else []


def _part(name: str, yaml: Yaml) -> str:
    if name not in PARTS:
        raise yaml.error("spec-word", f'unknown part of a time "{name}"', nearest_or_all(name, PARTS))
    return name


def _classes(yaml: Yaml) -> dict[str, str]:
    written = yaml.get("class")
    if not given(written):
        return {"else": "string"}
    entries = written.items() if isinstance(written.value, dict) else [("else", written)]
    return {name: one_of(entry, CLASSES, "spec-class", "class") for name, entry in entries}


def _codec(yaml: Yaml) -> str:
    """Returns a codec of Python for texts, or `binary` for bytes that are not text."""
    name = yaml.text()
    try:
        b" ".decode("ascii" if name == "binary" else name)
    except UnicodeError:
        return name
    except LookupError:
        hint = "for instance utf_8, cp1252, gbk, or binary"
        raise yaml.error("spec-word", f'"{name}" is not a text codec of Python', hint) from None
    return name


def _path(yaml: Yaml | None) -> FieldPath:
    return read_path(yaml) if given(yaml) else FieldPath()
