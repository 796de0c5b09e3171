"""The known formats that fit files of messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands.arguments import MessagesArguments
from runner.commands.messages import messages_in
from runner.errors import RunnerError
from runner.infer.candidates import fits_of
from runner.infer.fits import Fit, best
from runner.infer.samples import spread
from runner.report import Report
from runner.run.workspace import folders_of
from runner.spec.formats import FormatFolders
from runner.spec.schemas import Schemas, schemas_at

if TYPE_CHECKING:
    from runner.functions.avro.files import FileMessage


@dataclass(frozen=True)
class Look:
    """Messages of files, at most MOST of them, and how well the known formats fit; the best first. `dump` is what
    a source's `dump` has to be to read the first of them; None for files of messages.
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
    """The name of the format that fits a file; raises `infer-none` if none does."""
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
    """A look at files, given with their content; raises `infer-nothing` if they have no messages."""
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
    """Whether a file has messages in JSON or in Avro."""
    from runner.functions.avro.files import LINES, MAGIC

    return "avro" if file.removesuffix(".gz").endswith(LINES) or content[: len(MAGIC)] == MAGIC else "json"
