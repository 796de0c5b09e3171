"""The errors that Spark raises when a query fails, in words for the person who wrote the query."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, QueryContextType

from runner.errors import RunnerError, refused
from runner.files import Damaged


@dataclass(frozen=True)
class SqlPlace:
    """A place in the text of a query, whose lines and columns count from 1. `fragment` is the text at the place, empty
    if it is not known. The text may be that of a view that the query reads.
    """

    line: int
    column: int
    fragment: str = ""

    def found_in(self, sql: str) -> SqlPlace | None:
        """Returns the place in a query; the place of the last character if the query ends before it; None if it is not
        there.
        """
        lines = sql.split("\n")
        rest = "\n".join(lines[self.line - 1 :])[self.column - 1 :]
        if self.line > len(lines) or not rest.startswith(self.fragment):
            return None
        last = sql.rstrip().split("\n")
        return self if rest.strip() else SqlPlace(len(last), len(last[-1]))


class QueryFailed(Exception):
    """Spark refused or aborted a query, because of the text at `place`, if that is known."""

    def __init__(self, message: str, place: SqlPlace | None = None) -> None:
        super().__init__(message)
        self.message, self.place = message, place

    @property
    def is_of_disk(self) -> bool:
        """True if a disk is full or refuses access."""
        return any(remedy in self.message for _, remedy in DISK_REMEDIES)


@contextmanager
def explained(pattern: re.Pattern[str], why: str) -> Iterator[None]:
    """Shortens an error in which the pattern is found to the text that it finds, with the reason `why`."""
    try:
        yield
    except QueryFailed as failure:
        found = pattern.search(failure.message)
        if not found:
            raise
        raise QueryFailed(f"{found[0]}: {why}") from failure


class SparkGone(QueryFailed):
    """The JVM has ended, by itself or by a signal."""

    def __init__(self) -> None:
        super().__init__("the JVM of Spark has ended: logs/spark.log in the target path may say why")


@contextmanager
def query_errors() -> Iterator[None]:
    """Raises Spark's errors as QueryFailed."""
    try:
        yield
    except PySparkException as error:
        raise _query_failed(error) from error
    except Py4JJavaError as error:
        causes = _causes(error.java_exception)
        raise QueryFailed(_explained(causes[-1], causes)) from error
    except (Py4JError, ConnectionError) as error:
        raise SparkGone from error
    except Damaged as error:
        raise QueryFailed(str(error)) from error
    except OSError as error:
        said = refused(error)
        raise QueryFailed(f"{said.message}: {said.hint}") from error


@contextmanager
def telling(tell: Callable[[QueryFailed], None]) -> Iterator[None]:
    """Raises Spark's errors as QueryFailed. `tell` is called with each before it is raised, and may raise an error that
    says more; it is not called for a JVM that has ended.
    """
    try:
        with query_errors():
            yield
    except SparkGone:
        raise
    except QueryFailed as failure:
        tell(failure)
        raise


@contextmanager
def spark_gone() -> Iterator[None]:
    """Raises RunnerError `spark-gone` if the JVM has ended, wherever the block notices that."""
    try:
        yield
    except (Py4JJavaError, BrokenPipeError):
        raise  # an error of Java, and a reader of the output who is gone
    except (SparkGone, Py4JError, ConnectionError) as error:
        hint = "run again; a machine that is short of memory ends it: see spark.driver.memory under spark"
        raise RunnerError("spark-gone", SparkGone().message, hint=hint) from error


PLACE = re.compile(r"line (\d+),? pos (\d+)")
POSITION = re.compile(r"line (\d+), position (\d+)")
# Maps words of Java, Hadoop and Spark for a mistake with a disk, or with a file, to the text that says what to do.
NO_SPACE = (
    "no space is left: make some on the disks of the tables and of Spark's temporary files (spark.local.dir), then "
    "run again"
)
DISK_REMEDIES = (
    (r"No space left on device|Disk quota exceeded|ENOSPC", NO_SPACE),
    (
        r"Permission denied|AccessControlException|AccessDenied|Operation not permitted",
        "there is no permission: let the user of this command (on a cluster, that of Spark) read and write there",
    ),
    (r"Read-only file system", "the disk cannot be written: choose another folder, or mount it for writing"),
)
FILE_REMEDY = (
    r"FAILED_READ_FILE|EOFException|ZipException|DataFormatException|incorrect (header|data) check"
    r"|is not a Parquet file|CANNOT_READ_FILE_FOOTER|ChecksumException|Checksum error|FileNotFoundException"
    r"|PATH_NOT_FOUND|FILE_NOT_EXIST|Is a directory|Not a directory|ParentNotDirectory"
    r"|batch [0-9]+ doesn't exist",
    "the file is missing, cut or damaged: if it has messages, put the whole file there, or move it away; "
    "if it belongs to a table, restore the table with its checkpoint, or run with --full-refresh",
)
MOST_CAUSES = 20
# A column of a Parquet file whose type cannot be read as the type that the column has in a table of messages.
MISFIT = re.compile(
    r"PARQUET_COLUMN_DATA_TYPE_MISMATCH\].* reading file (\S+?)\. .*column \[([^\]]+)\]\. "
    r"Expected Spark type (.+?), actual Parquet type (\w+)"
)
# The message of a function in Python about schemas, after a stack trace.
REGISTRY_FAILED = re.compile(r"RegistryFailed: (.+)")


def _query_failed(error: PySparkException) -> QueryFailed:
    """Returns the error of Spark without plans and stack traces, and with the place that Spark names: `line 3 pos 7`,
    with lines from 1 and positions from 0.
    """
    whole = str(error)
    if failed := REGISTRY_FAILED.search(whole):
        return QueryFailed(f"{failed[1]}\nno message is lost: the next run reads them")
    text = re.split(r"\n\nJVM stacktrace|\n+\tat \w|;\n|\n=+ \w|; line \d+ pos| \(line \d+, pos", whole)[0].strip()
    text = _explained(text or type(error).__name__, _causes(getattr(error, "_origin", None)))
    return QueryFailed(text, _place(error, whole))


def _place(error: PySparkException, whole: str) -> SqlPlace | None:
    """Returns the place that Spark gives beside an error, with positions from 1; else the place in its text, with
    positions from 0.
    """
    for context in error.getQueryContext() or ():
        if context.contextType() == QueryContextType.SQL and (place := POSITION.search(context.summary())):
            return SqlPlace(int(place[1]), int(place[2]), context.fragment())
    place = PLACE.search(whole)
    return SqlPlace(int(place[1]), int(place[2]) + 1) if place else None


def _explained(text: str, causes: list[str]) -> str:
    """Returns the message of Spark with its cause and, if a disk or a file is to blame, with the text that says what to
    do.

    >>> print(_explained("[FAILED_READ_FILE.NO_HINT] while reading file a.gz", ["x", "java.io.EOFException: the end"]))
    [FAILED_READ_FILE] while reading file a.gz (java.io.EOFException: the end)
    the file is missing, cut or damaged: if it has messages, put the whole file there, or move it away; if it belongs \
to a table, restore the table with its checkpoint, or run with --full-refresh
    >>> _explained("[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] while reading file a.parquet. Data type \
mismatches when reading Parquet column [n]. Expected Spark type bigint, actual Parquet type BINARY. SQLSTATE", [])
    'the column "n" of "a.parquet" is BINARY, and must be a bigint: write it with that type'
    >>> _explained("[TABLE_OR_VIEW_NOT_FOUND] no a", ["[TABLE_OR_VIEW_NOT_FOUND] no a"])
    '[TABLE_OR_VIEW_NOT_FOUND] no a'
    """
    if found := MISFIT.search(text):
        file, column, wanted, kind = found.groups()
        return f'the column "{column}" of "{file}" is {kind}, and must be a {wanted}: write it with that type'
    said = text.replace(".NO_HINT]", "]")
    # A process of Python that has died ends a stream of bytes, not a file.
    for words, remedy in () if "Python worker" in text else (*DISK_REMEDIES, FILE_REMEDY):
        behind = next((cause for cause in reversed([text, *causes]) if re.search(words, cause)), None)
        if behind is not None:
            last = causes[-1] if causes else text
            return f"{said}{'' if last in text else f' ({last})'}\n{remedy}"
    return said


def _causes(error: Any) -> list[str]:
    """Returns the first lines of an error of Java and of the errors that caused it, the innermost last."""
    causes: list[str] = []
    while error is not None and len(causes) < MOST_CAUSES:
        causes.append(str(error.toString()).split("\n")[0])
        error = error.getCause()
    return causes
