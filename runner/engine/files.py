"""The file systems in which a target's tables and checkpoints are."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.files import decoded, is_uri, write_whole
from runner.project.inputs import Target
from runner.storage.data import FileSystem

if TYPE_CHECKING:
    from runner.engine.session import Spark


def files_of(spark: Spark, target: Target) -> FileSystem:
    """Returns the file system of a target's tables and checkpoints."""
    if is_uri(target.path):
        return HadoopFiles(spark.jvm, spark.session._jsc.hadoopConfiguration())
    return LocalFiles()


class LocalFiles:
    """Folders that this machine sees."""

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def names(self, folder: str) -> list[str]:
        return [path.name for path in Path(folder).glob("*")]

    def read(self, path: str) -> str:
        return decoded(Path(path).read_bytes(), path)

    def write(self, path: str, text: str) -> None:
        write_whole(Path(path), text)

    def remove(self, path: str) -> None:
        if Path(path).is_dir():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)

    def move(self, path: str, to: str) -> None:
        Path(to).parent.mkdir(parents=True, exist_ok=True)
        Path(path).rename(to)


class HadoopFiles:
    """Folders that Spark sees and this machine may not: any file system of Hadoop that the class path has (s3a://,
    hdfs:// ...), with the settings and rights of the session. `jvm` and `settings` are objects of the JVM.
    """

    def __init__(self, jvm: Any, settings: Any) -> None:
        self.jvm, self.settings = jvm, settings

    def exists(self, path: str) -> bool:
        at, system = self._at(path)
        return bool(system.exists(at))

    def names(self, folder: str) -> list[str]:
        at, system = self._at(folder)
        return [status.getPath().getName() for status in system.listStatus(at)] if system.exists(at) else []

    def read(self, path: str) -> str:
        at, system = self._at(path)
        stream = system.open(at)
        try:
            return decoded(bytes(stream.readAllBytes()), path)
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """Writes or replaces a file as Spark does the files of a checkpoint: at every moment the old text or the new
        one is there.
        """
        at, _ = self._at(path)
        checkpointing = self.jvm.org.apache.spark.sql.execution.streaming.checkpointing
        manager = checkpointing.CheckpointFileManager.create(at, self.settings)
        manager.mkdirs(at.getParent())
        stream = manager.createAtomic(at, True)
        try:
            stream.write(text.encode())
        except BaseException:
            stream.cancel()
            raise
        stream.close()

    def remove(self, path: str) -> None:
        at, system = self._at(path)
        system.delete(at, True)

    def move(self, path: str, to: str) -> None:
        (at, system), (target, _) = self._at(path), self._at(to)
        system.mkdirs(target.getParent())
        if system.exists(target):
            # A store without folders renames one file after the other, and was interrupted.
            if system.getFileStatus(at).isDirectory():
                for name in self.names(path):
                    self.move(f"{path}/{name}", f"{to}/{name}")
                self.remove(path)
                return
            self.remove(to)
        if not system.rename(at, target):
            raise OSError(f"cannot move {path} to {to}")

    def _at(self, path: str) -> tuple[Any, Any]:
        """Returns the path and its file system, as objects of the JVM."""
        at = self.jvm.org.apache.hadoop.fs.Path(path)
        return at, at.getFileSystem(self.settings)
