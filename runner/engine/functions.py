"""The functions of one session that are not Spark's own: those in Python, and SQL functions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from pyspark import cloudpickle
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from runner import functions
from runner.engine.errors import QueryFailed, telling
from runner.functions import udfs
from runner.functions.avro.layout import Layout
from runner.project.sql_functions import SqlFunction
from runner.sql_text import names_called

NOT_READ = (
    "the server cannot make SQL functions: one of its spark.sql.extensions does not read them, as Iceberg's up to 1.12"
)

TAKEN_BY_SPARK = "Spark has a function of this name, which calls would find instead"

# This project is not installed on executors: its functions travel to them with the query, as a whole.
cloudpickle.register_pickle_by_value(functions)  # type: ignore[no-untyped-call]  # pyspark's copy has no types


class MessageFunction(Protocol):
    """A function that reads messages in Avro. `fields` and `images` are trees of names with the numbers of the layout's
    slots at their ends; `sql_type` is the type of the value that the function returns.
    """

    @property
    def name(self) -> str: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def fields(self) -> Mapping[str, Any]: ...

    @property
    def images(self) -> Mapping[str, Any]: ...

    @property
    def sql_type(self) -> str: ...


class SqlFunctions(Protocol):
    """The SQL functions that queries may call."""

    def called_by(self, sql: str) -> tuple[SqlFunction, ...]:
        """Returns the functions that SQL needs, in the order in which they must be made."""

    def created(self, function: SqlFunction) -> str:
        """Returns the statement that makes a function of a session; the statement fails if the session has a function
        of this name.
        """

    def dropped(self, function: SqlFunction) -> str:
        """Returns the statement that removes the function of this name from a session."""


class NoFunctions:
    """The functions of sessions in which queries call no SQL functions, or only those that a catalog keeps."""

    def called_by(self, sql: str) -> tuple[SqlFunction, ...]:
        return ()

    def created(self, function: SqlFunction) -> str:
        raise AssertionError(function.name)

    def dropped(self, function: SqlFunction) -> str:
        raise AssertionError(function.name)


class SessionFunctions:
    """Makes functions in a session when a query first needs them. All threads of a run share the object. Schemas from
    registries are kept in a folder that executors see too; if `schemas_folder` is empty, each machine keeps them in a
    folder of its own.
    """

    def __init__(
        self, session: SparkSession, library: SqlFunctions, is_remote: bool = False, schemas_folder: str = ""
    ) -> None:
        self.session, self.library, self.is_remote = session, library, is_remote
        self.schemas_folder = schemas_folder
        # Name, in lower case -> the function that was made under this name.
        self.made: dict[str, object] = {}
        self.making = threading.RLock()
        self.reads_functions = True

    def cloned(self, session: SparkSession) -> SessionFunctions:
        """Returns the functions of a clone of this session, which has the functions that were made here. Must be called
        where no other thread is `making` functions.
        """
        out = SessionFunctions(session, self.library, self.is_remote, self.schemas_folder)
        out.made, out.reads_functions = dict(self.made), self.reads_functions
        return out

    def prepare(self, sql: str) -> None:
        """Makes the functions that a query calls."""
        self.make(self.library.called_by(sql))
        self.make_python(names_called(sql))

    def make(self, needed: Iterable[SqlFunction]) -> None:
        """Makes functions, given in the order in which they must be made. Functions of the library that these call are
        among them.
        """
        with self.making:
            for function in needed:
                name = function.name.lower()
                if self.made.get(name) != function:
                    self.make_python(function.calls)
                    if name in self.made:
                        self.session.sql(self.library.dropped(function))
                    self._make(function)
                    self.made[name] = function

    def register(self, needed: Iterable[MessageFunction]) -> None:
        """Makes the functions that read messages in Avro."""
        with self.making:
            for one in needed:
                if self.made.get(one.name) != one:
                    trees = {name: tree for name, tree in (("fields", one.fields), ("images", one.images)) if tree}
                    self._register(one.name, udfs.avro_reader(one.layout, trees, self.schemas_folder), one.sql_type)
                    self.made[one.name] = one

    def make_python(self, names: Iterable[str]) -> None:
        """Makes those of the named functions that are in Python."""
        with self.making:
            for name in (name for name in names if name in udfs.FUNCTIONS and name not in self.made):
                self._register(name, *udfs.FUNCTIONS[name])
                self.made[name] = udfs.FUNCTIONS[name]

    def _register(self, name: str, function: Callable[..., Any], kind: str) -> None:
        # pyspark's types do not know arrow_udf yet.
        self.session.udf.register(name, F.arrow_udf(function, kind))  # type: ignore[attr-defined]

    def _make(self, function: SqlFunction) -> None:
        with _explained(function):
            statement = self.library.created(function)
            if self.reads_functions:
                try:
                    # The result is not collected: Spark would analyse the statement a second time.
                    self.session.sql(statement)
                    return
                except UnsupportedOperationException:
                    if self.is_remote:
                        raise QueryFailed(NOT_READ) from None
                    self.reads_functions = False
            with spark_parser(self.session):
                self.session.sql(statement)


def _explained(function: SqlFunction) -> AbstractContextManager[None]:
    """Raises Spark's error about a function as QueryFailed, with the place of the function."""

    def place(failure: QueryFailed) -> None:
        # The place that Spark names is left out: it may be a place in the function's expression.
        said = TAKEN_BY_SPARK if "ROUTINE_ALREADY_EXISTS" in failure.message else failure.message
        raise QueryFailed(f'the SQL function "{function.name}" at {function.where}: {said}') from None

    return telling(place)


@contextmanager
def spark_parser(session: SparkSession) -> Iterator[None]:
    """Lets a session read SQL as Spark does, without its extensions, until the block ends. Iceberg's extension does not
    pass the arguments of functions on to Spark, and so refuses `create function`; the extension reads calls of
    functions.
    """
    state = session._jsparkSession.sessionState()
    parser = state.getClass().getDeclaredField("sqlParser")
    parser.setAccessible(True)
    extended = state.sqlParser()
    assert session._jvm
    parser.set(state, session._jvm.org.apache.spark.sql.execution.SparkSqlParser())
    try:
        yield
    finally:
        parser.set(state, extended)
