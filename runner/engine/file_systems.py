"""What a run asks of the place where tables and checkpoints lie."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Protocol


class FileSystem(Protocol):
    """Paths are texts, as the target gives them: absolute ones of this machine, or URIs."""

    def exists(self, path: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """What lies in a folder; nothing if it is not there."""

    def read(self, path: str) -> str: ...

    def write(self, path: str, text: str) -> None:
        """Writes a file in place of what was there; makes its folder."""

    def remove(self, path: str) -> None:
        """Removes a file or a folder with all in it, if it is there."""

    def move(self, path: str, to: str) -> None:
        """Moves a folder to where nothing is."""


def is_uri(path: str) -> bool:
    """
    >>> is_uri("s3a://lake/warehouse"), is_uri("/data/warehouse")
    (True, False)
    """
    return "://" in path


class LocalFiles:
    """Folders that this machine sees."""

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def names(self, folder: str) -> list[str]:
        return [path.name for path in Path(folder).glob("*")]

    def read(self, path: str) -> str:
        return Path(path).read_text(encoding="utf-8")

    def write(self, path: str, text: str) -> None:
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f".{file.name}.part")
        part.write_text(text, encoding="utf-8")
        part.replace(file)

    def remove(self, path: str) -> None:
        if Path(path).is_dir():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)

    def move(self, path: str, to: str) -> None:
        Path(path).rename(to)
