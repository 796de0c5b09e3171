"""The tables of a database as Spark reads them: through JDBC, or from the files of a dump."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import types as T

from runner.contract import schema
from runner.engine.errors import QueryFailed, query_errors
from runner.engine.session import Spark
from runner.engine.values import column_types
from runner.errors import RunnerError, Where
from runner.patterns import escaped
from runner.project.databases import Database, Dump, format_of
from runner.project.mirror import Mirror
from runner.render import name as quoted

CATALOG = "compared_database"
# Texts of fixed length are as the database gives them: some databases fill them up with blanks, others do not.
AS_GIVEN = "spark.sql.readSideCharPadding"
CATALOG_CLASS = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
# How many rows a driver fetches at a time: by default some drivers fetch all rows of a query at once.
FETCHED = "10000"
# What databases call the types of documents in JSON, and of texts of bits, which come as bytes.
DOCUMENTS, BITS = ("json", "jsonb"), ("bit", "varbit")
# The mark of a column of bits that Spark reads in a way that loses some of them.
LOST_BITS = "binarylong"
# A text that no file has. Spark reads quoted and unquoted empty values alike if null is the empty text.
NO_TEXT = "\u0000"
CSV_OPTIONS = {"header": "true", "multiLine": "true", "escape": '"', "nullValue": NO_TEXT, "emptyValue": ""}
NOT_THERE = "TABLE_OR_VIEW_NOT_FOUND"


@dataclass(frozen=True)
class OtherTable:
    """The table of a mirror as its database has it. `rows` is its name in SQL, `columns` are its columns with their
    types in SQL; those in `documents` are texts that are documents in JSON. `is_ranged` is True if the database reads
    only what a condition on the key asks for.
    """

    place: str
    rows: str
    columns: Mapping[str, str]
    documents: frozenset[str] = frozenset()
    is_ranged: bool = False


# --- JDBC


def connect(spark: Spark, database: Database) -> None:
    """Makes a database known to a session; raises RunnerError `verify-connection` if it cannot be reached, or if its
    driver is not there.
    """
    settings = {"url": database.address, "fetchsize": FETCHED, "preferTimestampNTZ": "true", **_properties(database)}
    if spark.jvm:
        driver = _driver(spark.jvm, database, spark.target.name)
        _check_connection(spark.jvm, driver, database)
        settings["driver"] = driver.getClass().getName()
    spark.session.conf.set(AS_GIVEN, "false")
    for key, value in {"": CATALOG_CLASS, **{f".{key}": value for key, value in settings.items()}}.items():
        spark.session.conf.set(f"spark.sql.catalog.{CATALOG}{key}", value)


def _properties(database: Database) -> dict[str, str]:
    logins = {"user": database.user, "password": database.password}
    return {**database.settings, **{key: value for key, value in logins.items() if value is not None}}


def driver_of(jvm: Any, address: str) -> Any:
    """Returns the driver for an address, or None. Java's own search does not see the jars of a session."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    drivers = jvm.java.util.ServiceLoader.load(jvm.java.lang.Class.forName("java.sql.Driver"), loader).iterator()
    while drivers.hasNext():
        driver = drivers.next()
        if driver.acceptsURL(address):
            return driver
    return None


def _driver(jvm: Any, database: Database, target: str) -> Any:
    if driver := driver_of(jvm, database.address):
        return driver
    package = database.package or "GROUP:ARTIFACT:VERSION of the driver"
    hint = f'packages: [{package}] in project.yml, under the target "{target}"'
    raise RunnerError("verify-connection", f'there is no driver for "jdbc:{database.kind}:"', hint=hint)


def _check_connection(jvm: Any, driver: Any, database: Database) -> None:
    properties = jvm.java.util.Properties()
    for key, value in _properties(database).items():
        properties.setProperty(key, value)
    try:
        driver.connect(database.address, properties).close()
    except Py4JJavaError as error:
        said = str(error.java_exception.getMessage()).strip().split("\n")[0].rstrip(".")
        hint = "see that the database runs, and correct the address, --user and --password-env"
        raise RunnerError("verify-connection", f'no connection to "{database.shown}": {said}', hint=hint) from error


def table_of(spark: Spark, database: Database, mirror: Mirror) -> OtherTable | None:
    """Returns the table of a mirror: that of its schema, else that which the address of the database names alone; None
    if there is none.
    """
    names = mirror.tables[-1].name
    for parts in dict.fromkeys((names[-2:], names[-1:])):
        rows = ".".join(map(quoted, (CATALOG, *parts)))
        found = _schema(spark, rows)
        if found is not None:
            columns = {**column_types(found, {}), **_types_of_bits(found)}
            documents = frozenset(one.name for one in found if _type_there(one) in DOCUMENTS)
            return OtherTable(f"{'.'.join(parts)} of {database.shown}", rows, columns, documents, is_ranged=True)
    return None


def _schema(spark: Spark, table: str) -> T.StructType | None:
    """Returns the schema of a table, None if the database has no such table."""
    with query_errors():
        try:
            return spark.session.table(table).schema
        except AnalysisException as error:
            if error.getCondition() != NOT_THERE:
                raise
            return None


def _type_there(column: T.StructField) -> str:
    """Returns the name of a column's type in the database, in lower case."""
    return str(column.metadata.get("jdbcClientType")).lower()


def _types_of_bits(columns: T.StructType) -> dict[str, str]:
    """Returns the types to compare columns of bits as, where Spark reads them as bytes."""
    bits = [one for one in columns if _type_there(one) in BITS and isinstance(one.dataType, T.BinaryType)]
    return {one.name: "bits" if LOST_BITS in one.metadata else "string" for one in bits}


# --- dumps


def file_of(spark: Spark, dump: Dump, mirror: Mirror) -> OtherTable | None:
    """Creates a view of the rows in the file of a mirror; returns None if the dump has none. Raises RunnerError
    `verify-file` for a line that cannot be read.
    """
    path = dump.files.get(mirror.name)
    if path is None:
        return None
    view = f"{mirror.name}__in_dump"
    reader, form, place = spark.session.read.option("mode", "FAILFAST"), format_of(path), escaped(str(path.absolute()))
    with damage_told(path), query_errors():
        if form == "parquet":
            frame, documents = reader.parquet(place), frozenset[str]()
        elif form == "csv":
            frame, documents = reader.options(**CSV_OPTIONS).csv(place), frozenset[str]()
        else:
            inferred = reader.option("primitivesAsString", "true").json(place).schema
            documents = frozenset(one.name for one in inferred if not isinstance(one.dataType, T.StringType))
            frame = reader.schema(schema(dict.fromkeys(inferred.names, "string"))).json(place)
        frame.createOrReplaceTempView(quoted(view))
        return OtherTable(str(path), quoted(view), column_types(frame.schema, {}), documents)


class damage_told:
    """Raises errors of Spark about a file of a dump as RunnerError `verify-file`, with the line that is not as it must
    be, if there is one.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.path is None or not isinstance(error, QueryFailed):
            return
        line, why = _first_bad_line(self.path)
        if line:
            hint = "correct the line, or write the file again"
            raise RunnerError("verify-file", f'"{self.path.name}" {why}', Where(self.path, line), hint) from error


def _first_bad_line(path: Path) -> tuple[int, str]:
    """Returns the number of the first line that cannot be read, 0 if there is none, and what is wrong with it."""
    form = format_of(path)
    if not path.is_file() or form == "parquet":
        return 0, ""
    with suppress(OSError, UnicodeDecodeError):
        opened = gzip.open if path.suffix.lower() == ".gz" else open
        with opened(path, "rt", encoding="utf-8", newline="" if form == "csv" else None) as file:
            bad = _bad_row(csv.reader(file)) if form == "csv" else _bad_object(file)
            return bad or (0, "")
    return 0, ""


def _bad_row(rows: Any) -> tuple[int, str] | None:
    columns = len(next(rows, []))
    start = rows.line_num + 1
    for row in rows:
        if row and len(row) != columns:
            return start, f"has {columns} columns, and this row {len(row)}"
        start = rows.line_num + 1
    return None


def _bad_object(lines: Iterator[str] | Any) -> tuple[int, str] | None:
    for number, line in enumerate(lines, 1):
        if line.strip():
            with suppress(ValueError):
                if isinstance(json.loads(line), dict):
                    continue
            return number, "must have one JSON object a line, and this line is none"
    return None
