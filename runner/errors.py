"""Errors that a user can cause and correct, and warnings, which stop nothing: what, where, and what to try."""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runner.counts import brief

BUG = "this is a bug in the runner: please report it with the lines above"
# The most characters of a message.
LONGEST = 4000
# The most characters that are shown of a line.
WIDEST = 160


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file that the user wrote, never in a generated one. Lines and columns count from 1."""

    path: Path
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(p) for p in (from_here(self.path), self.line, self.column) if p is not None)


class RunnerError(Exception):
    """A mistake that the user can correct. Any other exception is a bug, and keeps its traceback."""

    def __init__(self, code: str, message: str, where: Where | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.where, self.hint = code, _shortened(message), where, brief(hint)

    def at(self, where: Where | None) -> RunnerError:
        """Returns the same mistake, with this place if it has none of its own."""
        return RunnerError(self.code, self.message, self.where or where, self.hint)

    def __str__(self) -> str:
        return _said("error", self)


@dataclass(frozen=True)
class RunnerWarning:
    """A warning: it stops nothing, but the user should look at it."""

    code: str
    message: str
    where: Where | None = None
    hint: str = ""

    def __str__(self) -> str:
        return _said("warning", self)


class RunnerErrors(Exception):
    """Several mistakes at once, in the order of their places."""

    def __init__(self, errors: Iterable[RunnerError]) -> None:
        unique = {str(e): e for e in errors}
        self.errors = sorted(unique.values(), key=_place)
        super().__init__("\n".join(str(e) for e in self.errors))


class Problems:
    """Collects mistakes, so that the user sees all of them at once."""

    def __init__(self) -> None:
        self.errors: list[RunnerError] = []

    def add(self, error: RunnerError) -> None:
        self.errors.append(error)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Keeps a mistake that the block raises, and goes on after the block."""
        try:
            yield
        except RunnerErrors as several:
            self.errors.extend(several.errors)
        except RunnerError as error:
            self.errors.append(error)

    def raise_if_any(self) -> None:
        if self.errors:
            raise RunnerErrors(self.errors)


@contextmanager
def placed(where: Where) -> Iterator[None]:
    """Gives this place to mistakes that the block raises without a place."""
    try:
        yield
    except RunnerErrors as several:
        raise RunnerErrors(e.at(where) for e in several.errors) from None
    except RunnerError as e:
        raise e.at(where) from None


# The error of the system -> what is wrong with "{}", and what to do.
REFUSED = {
    errno.ENOSPC: ('no space is left on the disk of "{}"', "make space there, then run again"),
    errno.EDQUOT: ('the quota of the disk of "{}" is used up', "make space there, then run again"),
    errno.EACCES: ('there is no permission for "{}"', "let the user of this command read and write it"),
    errno.EPERM: ('there is no permission for "{}"', "let the user of this command read and write it"),
    errno.EROFS: ('"{}" is on a disk that cannot be written', "choose another folder, or mount the disk for writing"),
    errno.EISDIR: ('"{}" is a folder, and a file belongs there', "move the folder away"),
    errno.ENOTDIR: ('"{}" is a file, and a folder belongs there', "move the file away"),
    errno.EEXIST: ('"{}" is a file, and a folder belongs there', "move the file away"),
    errno.ENOENT: ('"{}" does not exist', "correct the path, or restore it"),
}


def refused(error: OSError, where: Where | None = None) -> RunnerError:
    """Returns an error for what the system has refused to do with a file; it names the file and what to do."""
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if path and error.errno == errno.ENOTDIR:
        path = next((above for above in path.parents if above.is_file()), path)
    other = f'"{{}}" cannot be used: {error.strerror or error}', "see what the system says of this file"
    said, hint = REFUSED.get(error.errno or 0, other)
    return RunnerError(
        "file-refused", said.format(from_here(path) if path else "the project or its tables"), where, hint
    )


def errors_in(mistake: RunnerError | RunnerErrors | OSError) -> list[RunnerError]:
    """Returns the errors to report."""
    match mistake:
        case RunnerErrors():
            return mistake.errors
        case RunnerError():
            return [mistake]
    error = refused(mistake)
    error.__cause__ = mistake
    return [error]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a hint with the nearest of the known names; empty if none is near.

    >>> did_you_mean("stg_order", ["stg_orders", "orders"])
    'did you mean "stg_orders"?'
    >>> did_you_mean("zzz", ["a"])
    ''
    """
    near = difflib.get_close_matches(name, list(known), n=1)
    return f'did you mean "{near[0]}"?' if near else ""


def nearest_or_all(name: str, known: Iterable[str]) -> str:
    """Returns a hint with the nearest of the known names; if none is near, with all of them.

    >>> nearest_or_all("zzz", ["b", "a"])
    'known: a, b'
    """
    names = sorted(known)
    return did_you_mean(name, names) or (f"known: {', '.join(names)}" if names else "")


def full_refresh(model: str) -> str:
    """Returns the command that lands or builds a model again."""
    return f"runner run --full-refresh -s {model}"


def from_here(path: Path) -> Path:
    """Returns the path as a person would write it from the current folder."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def excerpt(where: Where, text: str, fragment: str = "") -> str:
    """Shows a place in a text: its line, and marks below the fragment that stands there.

    >>> print(excerpt(Where(Path("m.sql"), 2, 3), "select\\n  amout\\nfrom t", "amout"))
      --> m.sql:2:3
       |
     2 |   amout
       |   ^^^^^
    """
    line, column = text.split("\n")[(where.line or 1) - 1], where.column or 1
    begin = max(0, column - 1 - WIDEST // 2) if len(line) > WIDEST else 0
    shown, number = line[begin : begin + WIDEST], str(where.line)
    written = fragment.split("\n")[0]
    length = len(written) if line[column - 1 :].startswith(written) else 1
    marks = "".join("\t" if one == "\t" else " " for one in shown[: column - 1 - begin]) + "^" * max(length, 1)
    margin = " " * len(number)
    lines = (f" {margin} |", f" {number} | {shown}".rstrip(), f" {margin} | {marks[:WIDEST]}")
    return "\n".join([f"  --> {where}", *lines])


def _shortened(text: str) -> str:
    """Returns a message that is cut if it is too long: a message that quotes a whole file helps nobody."""
    text = brief(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _said(severity: str, what: RunnerError | RunnerWarning) -> str:
    head = f"{severity}[{what.code}]: {brief(what.message)}"
    place = f"\n  --> {what.where}" if what.where else ""
    hint = f"\n  hint: {brief(what.hint)}" if what.hint else ""
    return head + place + hint


def _place(error: RunnerError) -> tuple[str, int, int]:
    where = error.where
    return (str(where.path), where.line or 0, where.column or 0) if where else ("", 0, 0)
