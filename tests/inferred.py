"""What messages are compared with and drafted from: the known formats, what vendors write, a dialect of one's own."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.commands.infer import type_tables
from runner.functions.avro.files import FileMessage
from runner.infer.candidates import fits_of
from runner.infer.draft import draft_of
from runner.infer.fits import Fit
from runner.infer.understanding import Reading
from runner.spec.formats import FormatFolders
from runner.spec.schemas import Schemas
from runner.spec.words import Format
from runner.yaml_text import yaml_of
from tests import vendor_messages
from tests.pages import ROOT

FOLDERS = FormatFolders((ROOT / "formats",))


@functools.cache
def known() -> Mapping[str, Format]:
    return {name: spec for name in FOLDERS.names() if (spec := FOLDERS.check(name))}


@functools.cache
def tables() -> Mapping[str, Any]:
    return type_tables(FOLDERS)


NO_SCHEMAS = Schemas()


def fits(messages: Sequence[FileMessage], encoding: str, schemas: Schemas = NO_SCHEMAS) -> list[Fit]:
    return fits_of(known(), messages, encoding, schemas)


def as_messages(lines: Sequence[bytes]) -> list[FileMessage]:
    return [FileMessage(0, 0, line) for line in lines]


def fits_of_json(lines: Sequence[bytes]) -> list[Fit]:
    return fits(as_messages(lines), "json")


def json_lines(documents: Sequence[Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in documents)


def lines_of(vendor: str) -> list[bytes]:
    """What a vendor writes: the lives of some tables, statements and a heartbeat."""
    recorded = [sent.record.value or b"" for sent in vendor_messages.messages_of(vendor)]
    return [*recorded[:16], *recorded[-4:]]


def drafted(documents: Sequence[Any]) -> Format:
    """The format that a draft describes, which must be one without a mistake."""
    return FOLDERS.read("draft", yaml_of(text_of_draft(documents), Path("draft.yml")))


def text_of_draft(documents: Sequence[Any]) -> str:
    return draft_of(documents, tables(), "x.jsonl", "# head")


def told(spec: Format, document: Any) -> list[Any]:
    """What a format says of the rows of a message, as far as its structure goes."""
    reading = Reading(spec, document)
    line, _ = reading.understood()
    if line is None:
        return []
    if line.kind != "row":
        return [line.kind]
    table = [reading.text((field,)) for field in spec.columns["table_name"][:1]]
    # Some vendors tell a snapshot by what else stands there, which no draft finds.
    op = "insert" if line.op == "snapshot" else line.op
    return [line.kind, op, reading.rows(line.own), reading.rows(line.before) and line.op != "insert", table]


def checked(name: str) -> Format:
    """A format of the project in this folder."""
    spec = FormatFolders((Path("formats"), *FOLDERS.folders)).check(name)
    assert spec
    return spec


def renamed(
    value: Any, kept: frozenset[tuple[str, ...]], new: dict[tuple[str, ...], str], path: tuple[str, ...] = ()
) -> Any:
    """A document whose fields have other names, without those in `kept`: the columns of images and types."""
    if path in kept or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [renamed(one, kept, new, path) for one in value]
    return {new[(*path, name)]: renamed(member, kept, new, (*path, name)) for name, member in value.items()}


def paths_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for one in value if isinstance(value, list) else [value]:
        for name, member in one.items() if isinstance(one, dict) else ():
            yield (*path, name)
            yield from paths_in(member, (*path, name))


def random_names(documents: Sequence[Any], seed: int) -> dict[tuple[str, ...], str]:
    """A name of its own for each field, which says nothing; their order is another one, too."""
    paths = sorted({path for document in documents for path in paths_in(document)})
    return {path: f"f{hashlib.sha1(f'{seed} {path}'.encode()).hexdigest()[:8]}" for path in paths}


def dialect(op: Mapping[str, str], count: int = 4) -> list[Any]:
    """Messages of a dialect of one's own: `op` are its words for insert, update and delete."""
    out: list[Any] = []
    for n in range(count):
        row = {"id": n, "status": "created", "amount": 1.5 * n}
        table, at = "shop.orders", f"2024-05-01T10:00:0{n}Z"
        header = {"tbl": table, "at": at}
        out += [
            {"hdr": {**header, "act": op["insert"]}, "row": {"new": row, "orig": {}}, "pk": "id"},
            {"hdr": {**header, "act": op["update"]}, "row": {"new": row, "orig": {"status": "new"}}, "pk": "id"},
            {"hdr": {**header, "act": op["delete"]}, "row": {"new": {}, "orig": row}, "pk": "id"},
        ]
    return out


OWN = dialect({"insert": "A", "update": "M", "delete": "R"})
LINES = json_lines(OWN)
