"""The search for rows of a key that was erased in all files of a target."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.engine.erasures import Erasure, KeyPart
from runner.engine.errors import QueryFailed
from runner.files import is_uri

if TYPE_CHECKING:
    from runner.engine.session import Spark

IMAGES = ("key", "old_key", "before", "after")
VALUES = "erased_values"
TABLES_SEEN = "_tables_seen"


@dataclass(frozen=True)
class InFiles:
    """How the key is found in the rows of files: in the images of a `changelog`, in columns of a `table`, or, in
    `other` files, only by values. `names` are the maps, or the columns with the parts of the key; values are searched
    in the columns `searched`.
    """

    kind: str
    searched: Sequence[str]
    names: Sequence[Any] = ()


class Search:
    """Searches files for rows of erased keys, and for values that only these rows had. `columns` maps the names of
    tables that have the key to their columns. The message of a file that cannot be read is a finding too.
    """

    def __init__(
        self,
        spark: Spark,
        macro: Callable[..., str],
        erasures: Sequence[Erasure],
        columns: Mapping[str, Mapping[str, KeyPart]],
        values: Sequence[str],
    ) -> None:
        self.spark, self.macro, self.erasures, self.columns = spark, macro, erasures, columns
        self.values = values
        spark.rows_view(VALUES, [(value,) for value in values], "value string")

    def of(self, folders: Sequence[str]) -> tuple[dict[str, int], list[dict[str, Any]]]:
        """Returns how many files of each kind are in these folders, and where something was found. Folders that this
        machine does not see are left out.
        """
        files = [file for folder in folders if not is_uri(folder) for file in sorted(Path(folder).rglob("*"))]
        files = [file for file in dict.fromkeys(files) if file.is_file()]
        parquet = [file for file in files if file.suffix == ".parquet" and file.stat().st_size]
        # What is recorded of types has no values, but words that may be values too.
        others = [file for file in files if file.suffix != ".parquet" and file.parent.name != TABLES_SEEN]
        found = [*self._in_parquet(parquet), *self._in_bytes(others)]
        return {"parquet": len(parquet), "other": len(others), "values": len(self.values)}, found

    def _in_parquet(self, files: Sequence[Path]) -> Iterator[dict[str, Any]]:
        for folder, own in groupby(sorted(files, key=_table_of), key=_table_of):
            paths = [f"{path}" for path in own]
            try:
                rows = self._rows(folder, paths)
            except QueryFailed:
                # Files of one table may have columns whose types differ.
                rows = sum(self._rows(folder, [path]) for path in paths)
            if rows:
                yield {"place": folder, "rows": rows}

    def _rows(self, folder: str, paths: Sequence[str]) -> int:
        columns = self.spark.files_view("erased_search", paths)
        sql = self.macro("rows_left", "erased_search", self._how(folder, columns), self.erasures, VALUES)
        return int(self.spark.rows(sql)[1][0]["rows"])

    def _how(self, folder: str, columns: Sequence[str]) -> InFiles:
        if {*IMAGES, "table_name"} <= {*columns}:
            return InFiles("changelog", [one for one in columns if one != "types"], IMAGES)
        for part in reversed(Path(folder).parts):
            if (own := self.columns.get(part)) and own.keys() <= {*columns}:
                return InFiles("table", columns, [*own.items()])
        return InFiles("other", columns)

    def _in_bytes(self, files: Sequence[Path]) -> Iterator[dict[str, Any]]:
        told = [one for value in self.values for one in {value.encode(), json.dumps(value)[1:-1].encode()}]
        for file in files:
            content = file.read_bytes()
            if content[:2] == b"\x1f\x8b":
                content = gzip.decompress(content)
            if any(value in content for value in told):
                yield {"place": f"{file}", "rows": None}


def _table_of(file: Path) -> str:
    """Returns the folder of the table of a file, without the folders of its partitions."""
    parts = file.parent.parts
    first = next((number for number, part in enumerate(parts) if "=" in part), len(parts))
    return str(Path(*parts[:first]))
