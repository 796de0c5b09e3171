"""The keys `message` and `records` of a spec: how messages are encoded, and what values that are records of their own
say.
"""

from __future__ import annotations

from pathlib import Path

from runner.errors import Problems, RunnerError, Where, did_you_mean, from_here, nearest_or_all
from runner.files import read_text
from runner.functions.avro.schema import SchemaError, parse_schema
from runner.spec.values import given, one_of, read_path, texts
from runner.spec.words import CLASSES, ENCODINGS, NUMBERS, PARTS, Format, Message, RecordText
from runner.spec.words import Path as FieldPath
from runner.yaml_text import Yaml

MESSAGE_KEYS = ("encoding", "numbers", "schema", "skip_bytes")
RECORD_KEYS = (
    "class",
    "text",
    "bytes",
    "charset",
    "charsets",
    "srid",
    "parts",
    "labels",
    "length",
    "is_null",
    "not_sent",
)
MOST_SKIPPED = 1024


def read_message(yaml: Yaml | None) -> Message:
    """How messages are encoded. Files of schemas lie beside the spec that names them."""
    if not given(yaml):
        return Message()
    yaml.only(MESSAGE_KEYS)
    encoding = one_of(yaml["encoding"], ENCODINGS, "spec-word", "encoding") if yaml.get("encoding") else "json"
    numbers = one_of(yaml["numbers"], NUMBERS, "spec-word", "way of numbers") if yaml.get("numbers") else "exact"
    for key, needed in (("schema", "avro"), ("skip_bytes", "avro"), ("numbers", "json")):
        if given(yaml.get(key)) and encoding != needed:
            raise yaml[key].error("spec-word", f'"{key}" is for encoding: {needed}')
    return Message(encoding, numbers, read_schemas(yaml.get("schema")), _skip_bytes(yaml.get("skip_bytes")))


def read_schemas(yaml: Yaml | None) -> tuple[str, ...]:
    """The texts of the files that are named, beside the YAML that names them; each is a schema."""
    problems = Problems()
    out: list[str] = []
    for one in yaml.listed() if given(yaml) else ():
        with problems.gathered():
            out.append(read_schema(one.where().path.parent / one.text(), one.where()))
    problems.raise_if_any()
    return tuple(out)


def read_schema(path: Path, where: Where | None) -> str:
    """The text of a file that is a schema; raises `schema-file` or `schema-unusable`."""
    if path.is_dir():
        raise RunnerError("schema-file", f'"{from_here(path)}" is a folder', where)
    if not path.is_file():
        near = did_you_mean(
            path.name, [other.name for other in path.parent.glob("*.avsc")] if path.parent.is_dir() else []
        )
        raise RunnerError("schema-file", f'there is no file "{from_here(path)}"', where, near)
    text = read_text(path)
    try:
        parse_schema(text)
    except SchemaError as e:
        raise RunnerError(
            "schema-unusable",
            f'"{path.name}" is no schema: {e}',
            where,
            "a file .avsc that describes the record of a message",
        ) from None
    return text


def _skip_bytes(yaml: Yaml | None) -> int:
    if not given(yaml):
        return 0
    if not (yaml.text().isascii() and yaml.text().isdecimal()) or int(yaml.text()) > MOST_SKIPPED:
        raise yaml.error(
            "spec-word",
            f'"skip_bytes" is a number of bytes up to {MOST_SKIPPED}, not "{yaml.text()}"',
            "5 for a byte and the number of a schema",
        )
    return int(yaml.text())


def check_encoding(spec: Format, yaml: Yaml) -> None:
    """Raises if a spec uses words that its encoding does not have."""
    problems = Problems()
    images = [image for line in spec.op.lines() for image in (line.before, line.after) if image]
    if spec.message.encoding == "avro":
        wrong = {"each": bool(spec.each), "text": any(image.text for image in images)}
        rest = "is not for encoding: avro"
    else:
        wrong = {
            "records": bool(spec.records),
            "names": any(image.names for image in images),
            "indexes": any(key.indexes for key in spec.key),
        }
        rest = "is for encoding: avro"
    for word, is_wrong in wrong.items():
        if is_wrong:
            problems.add((yaml.get(word) or _key_with(yaml, word)).error("spec-word", f'"{word}" {rest}'))
    problems.raise_if_any()


def _key_with(yaml: Yaml, word: str) -> Yaml:
    """The key of the spec in which a word stands, the spec itself if it is deeper."""
    return next(
        (
            one
            for key, one in yaml.items()
            if any(isinstance(entry.value, dict) and word in entry.value for entry in one.listed())
        ),
        yaml,
    )


# --- records


def read_records(yaml: Yaml | None) -> dict[str, RecordText]:
    problems = Problems()
    out: dict[str, RecordText] = {}
    for name, entry in yaml.mapping().items() if given(yaml) else ():
        with problems.gathered():
            if given(entry):
                out[name] = _record(entry)
    problems.raise_if_any()
    return out


def _record(yaml: Yaml) -> RecordText:
    yaml.only(RECORD_KEYS)
    is_null, not_sent = texts(yaml.get("is_null")), texts(yaml.get("not_sent"))
    sources = [key for key in ("text", "bytes", "parts") if given(yaml.get(key))]
    if len(sources) != (0 if is_null or not_sent else 1):
        raise yaml.error(
            "spec-missing",
            f'{yaml.name()} needs exactly one of "text", "bytes", "parts"',
            "or, if it is an enum, is_null and not_sent",
        )
    charset = _path(yaml.get("charset"))
    if bool(charset) != bool(yaml.get("charsets")):
        raise yaml.error("spec-missing", '"charset" and "charsets" go together', "charsets: {utf8mb4: utf_8}")
    return RecordText(
        classes=_classes(yaml),
        text=_path(yaml.get("text")),
        bytes=_path(yaml.get("bytes")),
        charset=charset,
        charsets={name: codec.text() for name, codec in yaml["charsets"].mapping().items() if _codec(codec)}
        if charset
        else {},
        srid=_path(yaml.get("srid")),
        parts={_part(name, path): read_path(path) for name, path in yaml["parts"].mapping().items()}
        if given(yaml.get("parts"))
        else {},
        labels=_path(yaml.get("labels")),
        length=_path(yaml.get("length")),
        is_null=is_null,
        not_sent=not_sent,
    )


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


def _codec(yaml: Yaml) -> bool:
    """True; raises for what is no codec of texts. `binary` stands for bytes that are none."""
    name = yaml.text()
    try:
        b" ".decode("ascii" if name == "binary" else name)
    except UnicodeError:
        return True
    except LookupError:
        raise yaml.error(
            "spec-word", f'"{name}" is no codec of Python for texts', "utf_8, cp1252, gbk ..., or binary"
        ) from None
    return True


def _path(yaml: Yaml | None) -> FieldPath:
    return read_path(yaml) if given(yaml) else ()
