"""Files of messages, as commands without a project read them."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runner.errors import RunnerError, did_you_mean

if TYPE_CHECKING:
    from runner.functions.avro.files import FileMessage


class Messages(NamedTuple):
    """Messages; for each the line where it begins, or its number if the file has no lines; whether a case could have
    them as they are; and what a source's `dump` has to be to read them, None for a file of messages.
    """

    messages: list[FileMessage]
    lines: list[int]
    is_case: bool
    dump: str | None = None


def messages_in(file: str, content: bytes, encoding: str) -> Messages:
    """The messages of a file."""
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
    """The content of a file of messages, unpacked; raises `file-missing` and `file-gzip`."""
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
