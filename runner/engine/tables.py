"""Tables in the target's storage: what is landed in them, made anew, merged, and forgotten."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, ByteType, DataType, IntegerType, MapType, ShortType, StructField, StructType

from runner.contract import COLUMNS, schema
from runner.engine.checkpoint import Checkpoint
from runner.engine.errors import QueryFailed, query_errors
from runner.engine.hadoop import files_of
from runner.engine.landed import Landed
from runner.engine.session import Spark
from runner.engine.values import observed
from runner.render import name as quoted

KINDS = ("row", "ddl", "control", "dead_letter")

# What is behind a table's name in the folders of one that is being written, and of one that is being replaced.
BUILDING, REPLACED = ".building", ".replaced"

# Delta takes names with these only in tables that know columns by number.
NOT_IN_NAMES_OF_DELTA = re.compile(r"[ ,;{}()\n\t=]")
COLUMNS_BY_NUMBER = ("delta.columnMapping.mode", "name")

TWO_ROWS_OF_ONE_KEY = re.compile(r"two new rows of .* have one key: .*?(?= SQLSTATE|\n|$)")


class Tables:
    """The tables of a target, by the names of their models. `macro` prints SQL."""

    def __init__(self, spark: Spark, macro: Callable[..., str]) -> None:
        self.spark, self.target, self.macro = spark, spark.target, macro
        self.storage = self.target.storage
        self.files = files_of(spark)
        self.schema_is_made, self.making_schema = False, Lock()

    def checkpoint(self, name: str) -> Checkpoint:
        return Checkpoint(self.files, f"{self.target.at('_checkpoints')}/{name}")

    def name_of(self, name: str) -> str:
        """What SQL calls a table."""
        return self.macro(f"{self.storage}_table", self.target, name).strip()

    # --- what is there

    def has_changelog(self, name: str) -> bool:
        """Whether a source's table was made."""
        if self.storage == "parquet":
            return any(
                entry.isdigit() or entry.endswith(".compact")
                for entry in self.files.names(f"{self.target.at(name)}/_spark_metadata")
            )
        return self.has_table(name)

    def _has_rows(self, name: str) -> bool:
        return self.has_changelog(name) and (
            self.storage == "parquet" or not self.spark.session.table(self.name_of(name)).isEmpty()
        )

    def has_table(self, name: str) -> bool:
        match self.storage:
            case "parquet":
                return self._place(name) is not None
            case "delta":
                return self.files.exists(f"{self.target.at(name)}/_delta_log")
        with query_errors():
            return self.spark.session.catalog.tableExists(self.name_of(name))

    def _place(self, name: str) -> str | None:
        """The name of the folder that a model's table in Parquet is in: not its own if a run died between taking the
        old table away and putting the new one there.
        """
        return next(
            (place for place in (name, f"{name}{BUILDING}") if self.files.exists(f"{self.target.at(place)}/_SUCCESS")),
            None,
        )

    def is_torn(self, name: str) -> bool:
        """Whether one of the two records is gone that must agree: what is committed to the table, and what was read."""
        checkpoint = self.checkpoint(name)
        if checkpoint.is_there:
            return checkpoint.newest_commit >= 0 and not self.has_changelog(name)
        return self._has_rows(name)

    # --- views, for a run

    def view(self, name: str, sql: str) -> None:
        """Makes a view of a query."""
        self.spark.view(name, sql)
        if self.storage == "iceberg":
            # MERGE cannot plan a view that was made of a frame over such tables, but one that was made of text.
            self.spark.do(self.macro("temporary_view", name, sql))

    def changelog_view(self, name: str) -> None:
        """Makes a view of a source's table; of no rows if nothing has landed yet."""
        if not self.has_changelog(name):
            self.spark.view(name, self.macro("no_rows"))
        elif self.storage == "parquet":
            # Only the root: with a glob or a sub-folder Spark would not look into the log of what is committed.
            self.spark.session.read.schema(schema(COLUMNS)).parquet(self.target.at(name)).select(
                *COLUMNS
            ).createOrReplaceTempView(name)
        else:
            self.view(name, self.macro("changelog_rows", self.name_of(name)))

    def table_view(self, name: str) -> bool:
        """Makes a view of a table that was written before; False if there is none."""
        if not self.has_table(name):
            return False
        place = self._place(name) if self.storage == "parquet" else name
        self.view(name, self.macro("all_rows", self.name_of(place)))
        return True

    def rows_of(self, name: str, is_changelog: bool) -> str:
        """The query of all rows of a table, which needs no view of a run."""
        if not is_changelog:
            return self.macro("all_rows", self.name_of(name))
        # Without a file of rows Spark does not know the columns of a folder.
        is_empty = self.storage == "parquet" and not any(
            entry.startswith("kind=") for entry in self.files.names(self.target.at(name))
        )
        return self.macro("no_rows") if is_empty else self.macro("changelog_rows", self.name_of(name))

    # --- tables of models

    def replace(self, name: str, sql: str) -> int:
        """Writes a query's rows to a table, in place of what was there; returns their number."""
        with query_errors():
            self._write(name, self.spark.query(sql))
        return self._written(name)

    def increase(self, name: str, sql: str, unique_key: Iterable[str], on_schema_change: str) -> int:
        """Takes the rows of the query into a table that is there; returns the number of its rows then. If the query
        fails, the table has the rows that it had.
        """
        rows = f"{name}__new"
        if self.storage == "parquet":
            self._finish_swap(name)
        self.table_view(name)
        self.view(rows, sql)
        had = self._kinds(name)
        sent = {_as_written(column, had): kind for column, kind in self._kinds(rows).items()}
        key = [_as_written(column, sent) for column in unique_key]
        columns = columns_then(name, had, sent, key, on_schema_change)
        taken = [column for column in columns if column in sent]
        new = self.macro("once_each", name, rows, key) if key else quoted(rows)
        with _two_rows_explained():
            if self.storage == "parquet":
                with query_errors():
                    self._write(
                        name,
                        self.spark.query(
                            self.macro("rewritten_with", self.name_of(name), new, columns, taken, list(had), key)
                        ),
                    )
            else:
                self._add_columns(name, {column: sent[column] for column in taken if column not in had})
                self.spark.do(
                    self.macro("merged", self.name_of(name), new, columns, taken, key)
                    if key
                    else self.macro("added", self.name_of(name), new, columns, taken)
                )
                # Runs last: values are gone with their column.
                self._drop_columns(name, [column for column in had if column not in columns])
        return self._written(name)

    def _add_columns(self, name: str, kinds: Mapping[str, str]) -> None:
        if self.storage == "delta" and _is_odd(*kinds.items()):
            self.spark.do(self.macro("delta_columns_numbered", self.name_of(name)))
        for column, kind in kinds.items():
            self.spark.do(self.macro("column_added", self.name_of(name), column, kind))

    def _drop_columns(self, name: str, columns: list[str]) -> None:
        if self.storage == "delta" and columns:
            self.spark.do(self.macro("delta_columns_numbered", self.name_of(name)))
        for column in columns:
            self.spark.do(self.macro("column_dropped", self.name_of(name), column))

    def _kinds(self, view: str) -> dict[str, str]:
        """Column -> its type in SQL, as the storage keeps it."""
        with query_errors():
            return {
                f.name: _sql_type(_kept(f.dataType) if self.storage == "iceberg" else f.dataType)
                for f in self.spark.session.table(quoted(view)).schema
            }

    def _write(self, name: str, frame: DataFrame) -> None:
        if self.storage == "parquet":
            return self._write_files(name, frame)
        self.make_schema()
        writer = frame.writeTo(self.name_of(name)).using(self.storage)
        if self.storage == "delta" and _is_odd(*((f.name, _sql_type(f.dataType)) for f in frame.schema)):
            writer = writer.tableProperty(*COLUMNS_BY_NUMBER)
        writer.createOrReplace()

    def _write_files(self, name: str, frame: DataFrame) -> None:
        """Writes the table beside its place, then puts it there; at every moment one of the two is whole."""
        root = self.target.at(name)
        self._finish_swap(name)
        self.files.remove(root + BUILDING)
        frame.write.parquet(root + BUILDING)
        if self.files.exists(root):
            self.files.remove(root + REPLACED)
            # To take a folder away in one step is to give it another name.
            self.files.move(root, root + REPLACED)
        self._finish_swap(name)

    def _finish_swap(self, name: str) -> None:
        """Puts a new table into its place if nothing is there any more; a run may have died before it came to that."""
        root = self.target.at(name)
        if self._place(name) == name + BUILDING:
            self.files.remove(root)
            self.files.move(root + BUILDING, root)
        self.files.remove(root + REPLACED)

    def _written(self, name: str) -> int:
        self.table_view(name)
        return self.spark.session.table(quoted(name)).count()

    # --- streams

    def start(self, name: str, sql: str, run_id: str, trigger: Mapping[str, Any]) -> Any:
        """Starts a stream over what is new; every message lands once, whatever befell earlier runs. Returns Spark's
        query.
        """
        with query_errors():
            frame = self.spark.query(sql).withColumns(
                {"run_id": F.lit(run_id), "loaded_at": F.current_timestamp(), "landed_on": F.current_date()}
            )
            counts = [F.count_if(F.col("kind") == kind).alias(kind) for kind in KINDS]
            frame = frame.observe("landed", *counts, F.count_if(F.col("seq.row") == 0).alias("messages"))
            writer = (
                frame.writeStream.queryName(name)
                .option("checkpointLocation", self.checkpoint(name).folder)
                .trigger(**trigger)
            )
            if self.storage != "parquet":
                self.make_changelog(name)
            match self.storage:
                case "parquet":
                    return writer.format("parquet").partitionBy("kind", "landed_on").start(self.target.at(name))
                case "delta":
                    return writer.format("delta").outputMode("append").start(self.target.at(name))
            return (
                writer.format("iceberg")
                .outputMode("append")
                .option("fanout-enabled", "true")
                .toTable(self.name_of(name))
            )

    def make_changelog(self, name: str) -> None:
        """Makes a source's table, without rows, where it is not there."""
        self.make_schema()
        self.spark.do(self.macro(f"{self.storage}_changelog_made", self.target, name))

    def make_schema(self) -> None:
        with self.making_schema:
            if self.target.catalog and not self.schema_is_made:
                self.spark.do(self.macro("schema_made", self.target))
                self.schema_is_made = True

    def forget(self, name: str) -> None:
        """Removes a source's table and what was read of it. First the checkpoint: without it, the table left alone is
        refused.
        """
        self.files.remove(self.checkpoint(name).folder)
        if self.storage == "iceberg":
            self.make_schema()
            self.spark.do(self.macro("table_dropped", self.name_of(name)))
        else:
            self.files.remove(self.target.at(name))


def _as_written(column: str, others: Iterable[str]) -> str:
    """A column as others write it, which may differ in case."""
    return next((other for other in others if other.lower() == column.lower()), column)


def columns_then(
    name: str, had: Mapping[str, str], sent: Mapping[str, str], key: list[str], on_schema_change: str
) -> list[str]:
    """The columns of a table after an increment; raises if they may not become what the query has."""
    new, gone = [c for c in sent if c not in had], [c for c in had if c not in sent]
    others = [f"{c} ({had[c]}, now {sent[c]})" for c in sent if had.get(c, sent[c]) != sent[c]]
    no_key = [c for c in key if c not in sent]
    if no_key:
        raise QueryFailed(f'the unique key "{no_key[0]}" is no column of "{name}": {", ".join(sent)}')
    if others or (on_schema_change == "fail" and (new or gone)) or (on_schema_change == "ignore" and gone):
        changes = [
            f"{what} {', '.join(which)}"
            for what, which in (("new:", new), ("gone:", gone), ("of another type:", others))
            if which
        ]
        raise QueryFailed(
            f'the columns of "{name}" have changed ({"; ".join(changes)}): --full-refresh makes it anew, or see on_schema_change'
        )
    if on_schema_change == "sync_all_columns":
        return [*(c for c in had if c in sent), *new]
    return [*had, *(new if on_schema_change == "append_new_columns" else [])]


@contextmanager
def _two_rows_explained() -> Iterator[None]:
    """Of what a query raises about keys, only what a person needs."""
    try:
        yield
    except QueryFailed as failure:
        said = TWO_ROWS_OF_ONE_KEY.search(failure.message)
        if not said:
            raise
        raise QueryFailed(f"{said[0]}: a unique key must tell the rows of one run apart") from failure


def _kept(kind: DataType) -> DataType:
    """The type that Iceberg has for one of Spark's."""
    match kind:
        case ByteType() | ShortType():
            return IntegerType()
        case ArrayType():
            return ArrayType(_kept(kind.elementType))
        case MapType():
            return MapType(_kept(kind.keyType), _kept(kind.valueType))
        case StructType():
            return StructType([StructField(f.name, _kept(f.dataType)) for f in kind])
    return kind


def _sql_type(kind: DataType) -> str:
    """The type as SQL writes it, whatever its fields are called."""
    match kind:
        case ArrayType():
            return f"array<{_sql_type(kind.elementType)}>"
        case MapType():
            return f"map<{_sql_type(kind.keyType)},{_sql_type(kind.valueType)}>"
        case StructType():
            return f"struct<{','.join(f'{quoted(f.name)}:{_sql_type(f.dataType)}' for f in kind)}>"
    return str(kind.simpleString())


def _is_odd(*columns: tuple[str, str]) -> bool:
    """
    Whether a name of columns, or of a field in their types, is one that Delta takes only if it knows columns by number.

    >>> _is_odd(("a.b", "int")), _is_odd(("a", "struct<`b`:array<struct<`c d`:int>>>"))
    (False, True)
    """
    names = [text for name, kind in columns for text in (name, *re.findall(r"`((?:[^`]|``)*)`", kind))]
    return any(NOT_IN_NAMES_OF_DELTA.search(text) for text in names)


def landed(progress: Iterable[Any]) -> Landed:
    """The sum of what batches have landed."""
    batches = [
        observed(p.observedMetrics["landed"]) for p in progress if p.observedMetrics and "landed" in p.observedMetrics
    ]
    total = {key: sum(batch[key] or 0 for batch in batches) for key in ("messages", *KINDS)}
    return Landed(total.pop("messages"), total)
