"""Files that the user wrote, as text, and paths that may be URIs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from runner.errors import RunnerError, Where, refused


def is_uri(path: str) -> bool:
    """Returns True if a path is a URI.

    >>> is_uri("s3a://lake/warehouse"), is_uri("/data/warehouse")
    (True, False)
    """
    return "://" in path


class Damaged(Exception):
    """A file that a run has written cannot be understood. The message names the file, what is wrong, and a remedy."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(
            f'"{path}" is damaged ({what}): restore it from a backup that was made together with the table, or read '
            "all messages again with --full-refresh"
        )


def decoded(content: bytes, path: str) -> str:
    """Returns the text of a file that a run has written; raises Damaged."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Damaged(path, f"byte {error.start + 1} is not UTF-8") from None


def from_json(text: str, path: str) -> Any:
    """Returns the JSON in a file that a run has written, or in a line of it; raises Damaged."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        what = f"no JSON at character {error.pos + 1} of {len(text)}" if text.strip() else "empty"
        raise Damaged(path, what) from None


def mapping(text: str, path: str, keys: Iterable[str] = ()) -> dict[str, Any]:
    """Returns the mapping that a run has recorded in a file, with these keys; raises Damaged."""
    found = from_json(text, path)
    if not isinstance(found, dict) or not set(keys) <= found.keys():
        raise Damaged(path, f"not a mapping with {', '.join(keys)}" if keys else "not a mapping")
    return found


def json_lines(text: str, path: str) -> list[Any]:
    """Returns the lines of a log of Spark's after the first, which is a version; Kafka's source writes a zero byte
    before the version. A line `-` stands for nothing.

    >>> json_lines('\\0v1\\n{"orders":{"0":5}}', "sources/0/0"), json_lines("v1\\n-\\n{}", "offsets/3")
    ([{'orders': {'0': 5}}], [{}])
    """
    version, *lines = text.removeprefix("\0").splitlines() or [""]
    if not version.startswith("v"):
        raise Damaged(path, "its first line is no version" if version else "empty")
    return [from_json(line, path) for line in lines if line not in ("", "-")]


def gone_beside_checksums(names: Iterable[str]) -> list[str]:
    """Returns the files of a log of Spark's that are gone while their checksums are there; Spark itself removes both.

    >>> gone_beside_checksums([".0.crc", ".1.crc", "1", "2"])
    ['0']
    """
    there = set(names)
    beside = {name[1:].removesuffix(".crc") for name in there if name.startswith(".") and name.endswith(".crc")}
    return sorted(name for name in beside - there if name.removesuffix(".compact").isdigit())


def write_whole(path: Path, text: str | Iterable[str]) -> None:
    """Writes or replaces a file, with its folder: at every moment the old text or the new one is there. A text may come
    in parts.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Runs that write other tables may write the same file.
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            file.writelines([text] if isinstance(text, str) else text)
        part.replace(path)
    except OSError as e:
        with suppress(OSError):
            part.unlink()
        # The error of the system names the part, or no file if the file is already open.
        e.filename = str(path)
        raise


def read_text(path: Path) -> str:
    """Returns the text of a file; raises `file-refused`, or `file-encoding` with the line if it is not UTF-8."""
    try:
        content = path.read_bytes()
    except OSError as e:
        raise refused(e, Where(path)) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = content.count(b"\n", 0, e.start) + 1
        raise RunnerError(
            "file-encoding",
            f"not UTF-8: the byte 0x{content[e.start]:02x}",
            Where(path, line),
            "save the file as UTF-8",
        ) from None
