"""Finds the known formats that fit files of messages."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runner.commands.arguments import MessagesArguments
from runner.errors import RunnerError, did_you_mean
from runner.infer.candidates import fits_of
from runner.infer.fits import Fit, best
from runner.infer.understanding import spread
from runner.report import Report
from runner.run.workspace import folders_of
from runner.spec.formats import FormatFolders
from runner.spec.schemas import Schemas, schemas_at

if TYPE_CHECKING:
    from runner.functions.avro.files import FileMessage


@dataclass(frozen=True)
class Look:
    """The messages of files, at most MOST of them, and how well the known formats fit, the best first. `dump` is the
    value that a source's `dump` needs to read the first file; None for files of messages.
    """

    name: str
    count: int
    messages: tuple[FileMessage, ...]
    encoding: str
    fits: tuple[Fit, ...]
    dump: str | None = None

    @property
    def best(self) -> list[Fit]:
        return best(self.fits)


def fitting_format(arguments: MessagesArguments, content: bytes, report: Report) -> str:
    """Returns the name of the format that fits a file; raises `infer-none` if none does."""
    folders = FormatFolders(folders_of(arguments.project, "formats"))
    schemas = schemas_at([(path, None) for path in arguments.schemas])
    look = look_at(folders, {arguments.file: content}, schemas)
    if not look.best:
        hint = f"runner formats infer {arguments.file} says why, and writes a draft of a new format"
        raise RunnerError("infer-none", f'no known format fits "{arguments.file}"', hint=hint)
    first, *others = (fit.name for fit in look.best)
    as_well = f"; {', '.join(others)} would fit as well: runner formats infer {arguments.file}" if others else ""
    report.say(f"the format {first} fits{as_well}")
    return first


def look_at(folders: FormatFolders, contents: Mapping[str, bytes], schemas: Schemas) -> Look:
    """Looks at files, given with their content, and at the formats that fit; raises `infer-nothing` if they have no
    messages.
    """
    encoding = _encoding(*next(iter(contents.items())))
    read = [messages_in(file, content, encoding) for file, content in contents.items()]
    messages = [one for each in read for one in each.messages]
    name = ", ".join(Path(file).name for file in contents)
    if not messages:
        raise RunnerError("infer-nothing", f'"{name}" has no messages')
    # A record without a value does not tell formats apart.
    chosen = spread([one for one in messages if one.raw or not one.record] or messages)
    specs = {name: spec for name in folders.names() if (spec := folders.check(name))}
    fits = fits_of(specs, chosen, encoding, schemas)
    return Look(name, len(messages), tuple(chosen), encoding, tuple(fits), read[0].dump)


def _encoding(file: str, content: bytes) -> str:
    """Returns the encoding of the messages of a file: json or avro."""
    from runner.functions.avro.files import LINES, MAGIC

    return "avro" if file.removesuffix(".gz").endswith(LINES) or content[: len(MAGIC)] == MAGIC else "json"


class Messages(NamedTuple):
    """The messages of a file. `lines` are the lines where the messages begin, or their numbers if the file has no
    lines. `is_case` is True if a case could have the messages as they are. `dump` is the value that a source's `dump`
    needs to read them, None for a file of messages.
    """

    messages: list[FileMessage]
    lines: list[int]
    is_case: bool
    dump: str | None = None


def messages_in(file: str, content: bytes, encoding: str) -> Messages:
    """Returns the messages of a file."""
    from runner.functions.avro.files import FileMessage
    from runner.project.inputs import RECORDS
    from runner.run.documents import dumped_messages, messages_of, split_messages

    if encoding == "avro":
        name = file.removesuffix(".gz")
        messages = messages_of(name, content, encoding)
        return Messages(messages, list(range(1, len(messages) + 1)), name.endswith(".base64"))
    dumped = None if file.endswith(RECORDS) else dumped_messages(content)
    if dumped or file.endswith(RECORDS):
        lines = [number for number, line in enumerate(content.split(b"\n"), 1) if line.strip(b" \t\r")]
        dump, messages = dumped or (None, messages_of(file, content, encoding))
        return Messages(messages, lines, dump is None, dump)
    split = split_messages(content)
    messages = [FileMessage(0, 0, message.text) for message in split]
    return Messages(messages, [message.line for message in split], messages == messages_of(file, content, encoding))


def read_file(file: str) -> bytes:
    """Returns the content of a file of messages, unpacked; raises `file-missing` and `file-gzip`."""
    if file == "-":
        return sys.stdin.buffer.read()
    path = Path(file)
    if path.is_dir():
        raise RunnerError("file-missing", f'"{file}" is a folder')
    if not path.is_file():
        near = did_you_mean(path.name, [other.name for other in path.parent.glob("*")] if path.parent.is_dir() else [])
        raise RunnerError("file-missing", f'there is no file "{file}"', hint=near)
    content = path.read_bytes()
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError) as e:
        raise RunnerError("file-gzip", f'cannot unpack "{file}": {str(e)[:1].lower()}{str(e)[1:]}') from None
