"""What Spark says when a query fails, for the person who wrote the query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException


class QueryFailed(Exception):
    """Spark refused or aborted a query; `line` and `column` (from 1) point into the SQL that was submitted."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


class SparkGone(QueryFailed):
    """The JVM has ended, by itself or by a signal."""


@contextmanager
def query_errors() -> Iterator[None]:
    """Raises Spark's errors as QueryFailed."""
    try:
        yield
    except PySparkException as error:
        raise _query_failed(error) from error
    except Py4JJavaError as error:
        raise QueryFailed(_innermost(error.java_exception)) from error
    except (Py4JError, ConnectionError) as error:
        raise SparkGone("the JVM of Spark has ended: logs/spark.log in the target path may say why") from error


PLACE = re.compile(r"line (\d+),? pos(?:ition)? (\d+)")


def _query_failed(error: PySparkException) -> QueryFailed:
    """What Spark says, without plans and stack traces, and the place that it names: `line 3 pos 7`, with lines from 1
    and positions from 0.
    """
    whole = str(error)
    text = re.split(r"\n\nJVM stacktrace|\n+\tat \w|;\n|\n=+ \w|; line \d+ pos", whole)[0].strip()
    text, place = text or type(error).__name__, PLACE.search(whole)
    return QueryFailed(text, int(place[1]), int(place[2]) + 1) if place else QueryFailed(text)


def _innermost(error: Any) -> str:
    """The message of the first cause of an error in Java."""
    while error.getCause() is not None:
        error = error.getCause()
    return str(error.toString()).split("\n")[0]
