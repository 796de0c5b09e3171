"""The candidates: the formats that messages are compared with, and the differences between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from runner.compile.paths import image_paths
from runner.functions.avro.files import FileMessage
from runner.functions.avro.reader import Malformed, Read, plain
from runner.functions.avro.schema import SchemaError, parse_record, parse_schema
from runner.functions.frames import FrameLayout, framed_events
from runner.infer.fits import Fit, fit_of
from runner.infer.understanding import ABSENT, Document, json_documents
from runner.spec.schemas import Schemas
from runner.spec.vocabulary import MERGED, WHOLE, Frames
from runner.spec.words import Format
from runner.yaml_text import Yaml

# The number of differences between two formats that are shown.
SHOWN = 6
# A zero byte and the number of a schema.
NUMBER_BYTES = 5
# Keys of a spec that say nothing about messages.
ABOUT = ("about", "docs", "extends")


def fits_of(specs: Mapping[str, Format], messages: Sequence[FileMessage], encoding: str, given: Schemas) -> list[Fit]:
    """Returns how well each format of this encoding fits; the best first. `given` are the user's schemas, which come
    before the format's own; messages of a container bring theirs. Formats in Avro without any schemas are left out.
    """
    found = []
    has_own = any(one.schema for one in messages)
    documents = json_documents([one.raw for one in messages]) if encoding == "json" else []
    flat = [spec for spec in specs.values() if (WHOLE,) in image_paths(spec)]
    beside = frozenset(name for spec in flat for name, _ in spec.drop)
    for name, spec in specs.items():
        if spec.message.encoding == encoding == "json":
            frames = spec.message.frames
            told = framed_documents(messages, frames) if frames else documents
            records = () if frames else [one.record for one in messages]
            found.append(replace(fit_of(spec, told, records, beside), name=name))
        elif spec.message.encoding == encoding and (given or spec.message.schemas or has_own):
            schemas = given or Schemas(spec.message.schemas)
            read = avro_documents(messages, schemas, spec.message.skip_bytes)
            found.append(replace(fit_of(spec, read), name=name))
    return sorted(found, key=attrgetter("rank"))


def framed_documents(messages: Sequence[FileMessage], frames: Frames) -> list[Document]:
    """Returns the documents of events that are frames of the bytes of records; ABSENT for damaged events."""
    layout = FrameLayout(*frames)
    events = [
        event for one in messages for event in framed_events(one.raw, one.record.key if one.record else None, layout)
    ]
    return json_documents([event.text.encode() if event.text and not event.damage else b"" for event in events])


def avro_documents(messages: Sequence[FileMessage], given: Schemas, skip_bytes: int) -> list[Document]:
    """Returns the records of messages, one for each; ABSENT for a message that is not a record of any of the schemas. A
    message that begins with the number of a given schema is read by that schema.
    """
    usual = [plain(parse_schema(text)) for text in given.texts]
    numbered = {number.to_bytes(NUMBER_BYTES, "big"): plain(parse_record(text)) for number, text in given.known.items()}
    own: dict[str, list[Read]] = {}
    for text in {one.schema for one in messages if one.schema}:
        try:
            own[text] = [plain(parse_record(text))]
        except (SchemaError, RecursionError):
            own[text] = []
    out = []
    for one in messages:
        if one.schema:
            out.append(_record(one.raw, own[one.schema], 0))
        elif one.raw[:NUMBER_BYTES] in numbered:
            out.append(_record(one.raw, [numbered[one.raw[:NUMBER_BYTES]]], NUMBER_BYTES))
        else:
            out.append(_record(one.raw, usual, skip_bytes))
    return out


def _record(message: bytes, reads: Sequence[Read], start: int) -> Document:
    for read in reads:
        try:
            value, end = read(message, start)
        except (Malformed, IndexError, RecursionError):
            continue
        if end == len(message):
            return value
    return ABSENT


def differences(one: Yaml, other: Yaml) -> str:
    """Returns the words in which two resolved specs differ, as a text.

    >>> differences(Yaml({"after": "a", "key": {"names": "k"}}, {}), Yaml({"after": "b", "key": {"names": "k"}}, {}))
    'after: a or b'
    """
    ours, theirs = dict(_words(one)), dict(_words(other))
    differing = [
        key for key in [*ours, *(key for key in theirs if key not in ours)] if ours.get(key) != theirs.get(key)
    ]
    said = [f"{key}: {ours.get(key, 'nothing')} or {theirs.get(key, 'nothing')}" for key in differing[:SHOWN]]
    return "; ".join(said) + (f" and {len(differing) - SHOWN} more" if differing[SHOWN:] else "")


def _words(spec: Yaml) -> Iterator[tuple[str, str]]:
    """Returns the words of a spec with their values as texts; words that are merged come one by one."""
    for key, value in spec.value.items():
        if key not in ABOUT:
            yield from _members(value, (key,))


def _members(value: object, steps: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and steps in MERGED:
        for name, member in value.items():
            yield from _members(member, (*steps, name))
    else:
        yield ".".join(steps), _text(value)


def _text(value: object) -> str:
    """Returns a value of a spec as a text on one line.

    >>> _text(["a", {"b": None}]), _text("a")
    ('[a, {b: none}]', 'a')
    """
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_text(member)}" for name, member in value.items()) + "}"
    return "none" if value is None else str(value)
