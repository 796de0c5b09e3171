"""The steps that give a table another name: what is kept under the old name goes on under the new one, and nothing is
read again. Each step can run twice: if a run was killed, the next one goes through all of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from runner.engine.checkpoint import Checkpoint
from runner.engine.erasures import ERASED
from runner.engine.files import LocalFiles
from runner.engine.progress import built_under, read_under
from runner.files import mapping
from runner.project.inputs import CHANGELOG, Target
from runner.project.mirror import BESIDE, HISTORY, MirrorQuery
from runner.project.nodes import Node
from runner.project.tables_seen import TablesSeen
from runner.storage.data import FileSystem
from runner.storage.storage import Storage

Step = Callable[[], object]


@dataclass(frozen=True)
class Rename:
    """A table that gets another name. `kind` is what it is: the changelog of a `source`, the `state` or the `history`
    of a mirror, or another `model`.
    """

    old: str
    new: str
    kind: str

    @classmethod
    def of(cls, node: Node, old: str) -> Rename:
        """Returns the rename of the table of a node from an old name."""
        query = node.model.query if node.model else None
        shows = query.shows if isinstance(query, MirrorQuery) else "model"
        return cls(old, node.relation, "source" if node.model and node.model.source else shows)

    @property
    def tables(self) -> list[tuple[str, str]]:
        """The old and the new name of the table, and of the one beside it."""
        endings = ("", BESIDE[self.kind]) if self.kind in BESIDE else ("",)
        return [(f"{self.old}{ending}", f"{self.new}{ending}") for ending in endings]

    @property
    def named(self) -> tuple[str, str]:
        """The old and the new name as SQL has them: a history has that of its mirror."""
        ending = HISTORY if self.kind == "history" else ""
        return self.old.removesuffix(ending), self.new.removesuffix(ending)

    @property
    def shown(self) -> tuple[str, str]:
        """The old and the new name as a person writes them."""
        ending = CHANGELOG if self.kind == "source" else ""
        return self.old.removesuffix(ending), self.new.removesuffix(ending)

    def __str__(self) -> str:
        old, new = self.shown
        return f'the {"source" if self.kind == "source" else "table"} "{old}" is "{new}" now'


class Moves:
    """The steps that move what is in files: tables, and what is recorded of them. `seen_here` is the folder of this
    machine for the tables seen of sources.
    """

    def __init__(self, files: FileSystem, storage: Storage, target: Target, seen_here: Path) -> None:
        self.files, self.storage, self.target, self.seen_here = files, storage, target, seen_here

    def steps(self, rename: Rename) -> Iterator[Step]:
        """Yields the steps in their order; each does nothing where it was already done."""
        for old, new in rename.tables:
            yield partial(self.storage.rename, old, new)
        for folder in ("_checkpoints", "_refreshes", ERASED):
            yield partial(self._move, folder, rename.old, rename.new)
        if rename.kind == "source":
            yield partial(self._checkpoint, rename)
            yield partial(self._result, *rename.shown)
            yield partial(self._seen, *rename.shown)
            for reader in self.readers(rename.old):
                yield partial(built_under, self.files, self._mark(reader), *rename.named)
                yield partial(read_under, self.files, self._progress(reader), rename.old, rename.new)
        else:
            yield partial(built_under, self.files, self._mark(rename.new), *rename.named)

    def readers(self, changelog: str) -> list[str]:
        """Returns the tables that record how far they have read a changelog of this name."""
        names = self.files.names(self.target.at("_checkpoints"))
        return sorted(name for name in names if changelog in self._read_by(name))

    def _read_by(self, name: str) -> set[str]:
        path = self._progress(name)
        if not self.files.exists(path):
            return set()
        record = mapping(self.files.read(path), path, ("read", "written"))
        return {*record["read"], *record.get("next", ())}

    def _progress(self, name: str) -> str:
        return f"{self.target.at('_checkpoints')}/{name}/_progress.json"

    def _mark(self, name: str) -> str:
        return f"{self.target.at('_checkpoints')}/{name}/_mark"

    def _move(self, folder: str, old: str, new: str) -> None:
        path = f"{self.target.at(folder)}/{old}"
        if self.files.exists(path):
            self.files.move(path, f"{self.target.at(folder)}/{new}")

    def _checkpoint(self, rename: Rename) -> None:
        """Records the name in the checkpoint of a source, if there is one."""
        before, now = (f"{self.target.at('_checkpoints')}/{name}" for name in (rename.old, rename.new))
        if self.files.exists(now):
            Checkpoint(self.files, now).renamed(before, *rename.shown)

    def _result(self, old: str, new: str) -> None:
        """Says that the rows of a query are there. They stay where they are, because rows that have landed name their
        files; another source that gets the old name asks its database.
        """
        done, now = (f"{self.target.at('_results')}/{name}/_SUCCESS" for name in (old, new))
        if self.files.exists(done):
            self.files.write(now, "")
            self.files.remove(done)

    def _seen(self, old: str, new: str) -> None:
        """Moves the record of the tables seen, also that of this machine if it is another one."""
        places: dict[str, FileSystem] = {f"{self.seen_here}": LocalFiles(), self.target.at("_tables_seen"): self.files}
        for folder, files in places.items():
            path = f"{folder}/{old}.json"
            if files.exists(path):
                seen = TablesSeen.read(files.read(path), path).of_source(new)
                files.write(f"{folder}/{new}.json", seen.text())
                files.remove(path)
