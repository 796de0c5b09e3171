"""Folders that Spark sees and this machine may not: s3a://, hdfs:// and whatever else its class path knows."""

from __future__ import annotations

from typing import Any

from runner.engine.file_systems import FileSystem, LocalFiles, is_uri
from runner.engine.session import Spark


def files_of(spark: Spark) -> FileSystem:
    """The file system of the target's tables and checkpoints."""
    return (
        HadoopFiles(spark.jvm, spark.session._jsc.hadoopConfiguration()) if is_uri(spark.target.path) else LocalFiles()
    )


class HadoopFiles:
    """Any file system of Hadoop's, with the settings and rights that the session has."""

    def __init__(self, jvm: Any, settings: Any) -> None:
        self.jvm, self.settings = jvm, settings

    def exists(self, path: str) -> bool:
        at, system = self._at(path)
        return system.exists(at)

    def names(self, folder: str) -> list[str]:
        at, system = self._at(folder)
        return [status.getPath().getName() for status in system.listStatus(at)] if system.exists(at) else []

    def read(self, path: str) -> str:
        at, system = self._at(path)
        stream = system.open(at)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        at, system = self._at(path)
        stream = system.create(at, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def remove(self, path: str) -> None:
        at, system = self._at(path)
        system.delete(at, True)

    def move(self, path: str, to: str) -> None:
        at, system = self._at(path)
        if not system.rename(at, self._at(to)[0]):
            raise OSError(f"cannot move {path} to {to}")

    def _at(self, path: str) -> tuple[Any, Any]:
        at = self.jvm.org.apache.hadoop.fs.Path(path)
        return at, at.getFileSystem(self.settings)
