"""Files that the user wrote, as text, and paths that may be URIs."""

from __future__ import annotations

from pathlib import Path

from runner.errors import RunnerError, Where


def is_uri(path: str) -> bool:
    """
    >>> is_uri("s3a://lake/warehouse"), is_uri("/data/warehouse")
    (True, False)
    """
    return "://" in path


def read_text(path: Path) -> str:
    """The text of a file; raises `file-encoding` with the line if it is not UTF-8."""
    content = path.read_bytes()
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
