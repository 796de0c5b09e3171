"""The tables of a target in each storage: as runs work with them, and as others see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from runner.compile.library import Library
from runner.project.settings import layout_of
from runner.run.workspace import ProjectArguments, Workspace
from tests.spark_fixtures import hadoop_catalog
from tests.sparks import WITHOUT_ICEBERG

if TYPE_CHECKING:
    from runner.engine.tables import Tables

STORAGES = ("parquet", "delta", *(() if WITHOUT_ICEBERG else ("iceberg",)))
TARGETS = """
name: storages
target: parquet
targets:
  parquet: {path: lake/parquet}
  delta: {storage: delta, path: lake/delta}
  iceberg: {storage: iceberg, path: lake/iceberg, catalog: {type: hadoop}}
"""


class Seen:
    """The tables in a folder, seen by a session that knows nothing of the runner."""

    def __init__(self, session: Any, storage: str, folder: Path) -> None:
        self.session, self.storage, self.folder = session.newSession(), storage, folder
        if storage == "iceberg":
            hadoop_catalog(self.session, "lake", folder)
            self.session.conf.set("spark.sql.catalog.lake.cache-enabled", "false")

    def table(self, name: str) -> str:
        return f"lake.changelog.{name}" if self.storage == "iceberg" else f"{self.storage}.`{self.folder}/{name}`"

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.session.sql(sql).collect()]

    def described(self, name: str) -> dict[str, tuple[str, str | None]]:
        """What DESCRIBE says: first column -> type, comment."""
        told = self.rows(f"describe table extended {self.table(name)}")
        return {row["col_name"]: (row["data_type"], row["comment"]) for row in told}

    def properties(self, name: str) -> dict[str, str]:
        return {row["key"]: row["value"] for row in self.rows(f"show tblproperties {self.table(name)}")}

    def folders(self, name: str) -> set[str]:
        """The names of the folders that a table's files are in, without those that nothing refers to any more."""
        if self.storage == "iceberg":
            files = [row["file_path"] for row in self.rows(f"select file_path from {self.table(name)}.files")]
        elif self.storage == "delta":
            files = self.session.read.format("delta").load(f"{self.folder}/{name}").inputFiles()
        else:
            files = [str(path) for path in (self.folder / name).rglob("*.parquet")]
        # Iceberg writes names of folders as parts of addresses, and addresses of files are quoted once more.
        once = [unquote(file.replace("+", " ")).split("/data/")[-1] for file in files]
        return {unquote(part) for file in once for part in [file.split(f"/{name}/")[-1].rsplit("/", 1)[0]]}


@dataclass(frozen=True)
class Lake:
    """The tables of a target as a run has them, and as they are seen by others."""

    tables: Tables
    seen: Seen

    @property
    def storage(self) -> str:
        return self.seen.storage

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query over the view of a table, values as `runner show` prints them."""
        return self.tables.spark.rows(sql)[1]

    def rows_of(self, name: str) -> list[dict[str, Any]]:
        """All rows of a table, in the order of its columns."""
        assert self.tables.table_view(name)
        return self.rows(f"select * from {name} order by all")

    def build(
        self, name: str, sql: str, description: str = "", columns: Mapping[str, str] = {}, **config: object
    ) -> None:
        """Builds a table with settings as a model has them."""
        self.tables.replace(name, sql, layout_of(config, description, columns))


@contextmanager
def opened(spark: Any, storage: str, folder: Path) -> Iterator[Lake]:
    """The tables of a target of this storage in a folder, in a session of their own."""
    from runner.engine.session import Spark
    from runner.engine.tables import Tables

    (folder / "project.yml").write_text(TARGETS)
    workspace = Workspace(ProjectArguments(folder, storage))
    with Spark(workspace.project.target, folder / "spark.log", Library(workspace.templates.renderer)) as session:
        yield Lake(Tables(session, workspace.templates.call), Seen(spark.session, storage, folder / "lake" / storage))
