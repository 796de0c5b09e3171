"""Running tests: data tests on tables, unit tests on given rows, cases of formats on given messages, tests of SQL
functions on given arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.compile.compiled import CompiledCase
from runner.counts import counted, enumeration
from runner.engine.checkpoint import Checkpoint
from runner.engine.errors import QueryFailed, SparkGone
from runner.engine.kafka import offset_views, topics_now
from runner.engine.messages import file_counts_view, messages_view
from runner.engine.offsets import TopicsNow
from runner.functions.avro.files import FileMessage, plain_path
from runner.project.inputs import Source, Topics
from runner.project.mirror import Mirror
from runner.project.nodes import DataTest, Node, UnitTest
from runner.project.properties import TestConfig
from runner.project.templates import new_rows_view, read_rows_view
from runner.render import name as quoted
from runner.run.compare import as_text, case_row, in_any_order, in_calls, in_order, place
from runner.run.documents import messages_of
from runner.run.drift import defaults_told, with_defaults
from runner.run.results import Result
from runner.run.source_files import differing_files

if TYPE_CHECKING:
    from runner.run.run import Run


SHOWN_FAILURES = 10

Row = Mapping[str, Any]


class TestRuns:
    """Runs the tests of one run. A query that several tests share runs once for all of them."""

    def __init__(self, run: Run) -> None:
        self.run, self.compiled, self.spark, self.macro = run, run.compiled, run.spark, run.macro
        self.views, self.tables, self.reading, self.statements = run.views, run.tables, run.reading, run.statements
        self.recount = Recount(run)
        self.verdicts: dict[str, Row] = {}
        self.case_rows: dict[str, dict[str, list[Row]]] = {}
        self.function_rows: dict[Path, list[Row]] = {}

    def data_test(self, node: Node, test: DataTest) -> Result:
        """Runs a data test, which passes if its query returns no rows, or if its config makes them no failure."""
        with self.tables.naming_damage(test.source.model) if test.source else nullcontext():
            result = self._data_test(node, test)
            return replace(result, notes=(*result.notes, *self._acknowledged(node, test)))

    def _acknowledged(self, node: Node, test: DataTest) -> Iterator[str]:
        """Yields what a person knows of and this test does not count."""
        if test.statements_of and test.statements_of.known("statement"):
            yield from (one.note for one in self.statements.of(test.statements_of).acknowledged)
        if test.values_of and test.values_of.known_unfit:
            rows = self.spark.rows(self.macro("acknowledged_unfit", quoted(self._relation(test.model)), test.values_of))
            for row in rows[1]:
                known = test.values_of.known_unfit[row["known"]]
                do = "does" if row["rows"] == 1 else "do"
                yield known.noted(f'{counted(row["rows"], "value")} of "{row["unfit_column"]}" {do} not fit')

    def _data_test(self, node: Node, test: DataTest) -> Result:
        sql = self.compiled.nodes[node.name].sql
        notes = self.views.prepare(node.name)
        notes += self.recount.views(test.source) if test.source else ()
        if test.mirror:
            if removed := self.reading.without_old_rows(test.mirror.models):
                note = f'old rows of "{removed[0]}" were removed: the mirror cannot be made again of what is left'
                return Result(node.name, "test", "warn", "", (*notes, note), 0)
            self.reading.show_read_rows(test.model, test.mirror.models)
            views = {one: read_rows_view(test.model, one) for one in test.mirror.models}
            followed = self.statements.show(test.mirror, views)
            read = tuple(replace(one, rows=views[one.source.model]) for one in followed.mirror.tables)
            defaults = defaults_told(self.tables, replace(followed.mirror, tables=read))
            if followed.mirror.was_renamed or defaults:
                sql = self._again(test, with_defaults(followed.mirror, defaults))
        if test.statements_of:
            self.statements.show(test.statements_of)
        if self._has_passed(node.name):
            return Result(node.name, "test", "warn" if notes else "pass", "", notes, 0)
        if test.config.store_failures:
            self.tables.replace(node.name, sql)
            sql = self.macro("all_rows", quoted(node.name))
        columns, failing = self.spark.rows(sql, SHOWN_FAILURES)
        failures, status = self._judge(sql, test.config, len(failing))
        tested = test.arguments.get("column")
        shown = [
            ", ".join(f"{c}: {_shown(row[c])}" for c in columns if row[c] is not None or c == tested) for row in failing
        ]
        if status == "pass":
            return Result(node.name, "test", "warn" if notes else "pass", "", notes, failures)
        message = counted(failures, "failing row")
        if test.config.store_failures:
            message += f', kept in the table "{node.name}"'
        return Result(node.name, "test", status, message, (*notes, *shown), failures)

    def _again(self, test: DataTest, mirror: Mirror) -> str:
        """Returns the query of a test that makes a mirror again, of a table that had other names or columns too."""
        query = replace(test.arguments["query"], mirror=mirror)
        return self.macro("test_mirrored", quoted(self._relation(test.model)), query)

    def _has_passed(self, name: str) -> bool:
        """Returns True if a query that answers several tests has told that no row fails this test."""
        sql = self.compiled.together.get(name)
        if sql is None:
            return False
        if sql not in self.verdicts:
            self.verdicts[sql] = self._verdict(sql)
        return bool(self.verdicts[sql].get(name))

    def _verdict(self, sql: str) -> Row:
        """Returns for each test in a query whether no row fails it. Returns nothing if the query fails, since it does
        not tell which test is to blame: each test then runs alone.
        """
        try:
            return self.spark.rows(sql)[1][0]
        except SparkGone:
            raise
        except QueryFailed:
            return {}

    def _judge(self, sql: str, config: TestConfig, found: int) -> tuple[int, str]:
        """Returns the number of failures of a test of which at least `found` rows fail, and the status."""
        if not config.counts_rows:
            row = self.spark.rows(self.macro("judged_failures", sql, config))[1][0]
            failures, warns, fails = int(row["failures"] or 0), row["warns"], row["fails"]
        else:
            failures = self.spark.count(sql) if found == SHOWN_FAILURES else found
            warns = fails = failures > 0
        if config.severity == "error" and fails:
            return failures, "fail"
        return failures, "warn" if warns else "pass"

    def unit_test(self, node: Node, test: UnitTest) -> Result:
        """Runs a unit test, which passes if the model makes the expected rows from the given ones, in any order."""
        session = self.spark.fresh()
        shapes = self.run.shapes
        shapes.prepare_shapes(test.model)
        for name, rows in test.given.items():
            if name != test.model:
                shapes.spark.given_rows(session, self._relation(name), rows)
        for read in test.new_rows:
            session.view(new_rows_view(test.model, read), self.macro("all_rows", quoted(self._relation(read))))
        if test.model in test.given:
            # The table has the columns that the model's first run makes.
            session.view(self._relation(test.model), self.compiled.nodes[test.model].sql)
            session.given_rows(session, self._relation(test.model), test.given[test.model])
        compiled = self.compiled.nodes[node.name if test.file else test.model]
        columns, got, expected = session.rows_beside(compiled.sql, test.expect)
        named = list(dict.fromkeys(key for row in expected for key in row)) or columns
        unknown = [column for column in named if column not in columns]
        if unknown:
            known = ", ".join(columns)
            raise QueryFailed(f'the expected rows have a column "{unknown[0]}", and the model does not: {known}')
        return _compared(node, in_any_order(_only(named, got), _only(named, expected)))

    def _relation(self, name: str) -> str:
        return self.run.graph.nodes[name].relation

    def case(self, node: Node) -> Result:
        """Runs a case, which passes if the format makes the expected rows from the messages, in the same order."""
        case = self.compiled.cases[node.name]
        meaning = case.query.meaning
        if meaning not in self.case_rows:
            self.case_rows[meaning] = self._rows_of_cases(meaning)
        return _compared(node, in_order(self.case_rows[meaning][node.name], case.rows))

    def _rows_of_cases(self, meaning: str) -> dict[str, list[Row]]:
        """Returns the rows of all cases that share a query, which runs once."""
        sharing = {name: case for name, case in self.compiled.cases.items() if case.query.meaning == meaning}
        owners: list[str] = []
        messages: list[FileMessage] = []
        for name, case in sharing.items():
            own = _messages(case)
            messages += own
            owners += [name] * len(own)
        first = next(iter(sharing.values()))
        session = self.spark.fresh()
        messages_view(session, messages, first.query.encoding, first.view)
        session.register(first.query.functions, first.query.sql_functions)
        out: dict[str, list[dict[str, Any]]] = {name: [] for name in sharing}
        for row in session.rows(first.query.sql)[1]:
            out[owners[row["seq"]["arrival"][0]]].append(row)
        return {name: [as_text(case_row(row)) for row in sorted(rows, key=place)] for name, rows in out.items()}

    def function_test(self, node: Node) -> Result:
        """Runs the test of a function, which passes if the function returns the expected values for all arguments."""
        test = self.compiled.function_tests[node.name]
        if test.file not in self.function_rows:
            self.function_rows[test.file] = self._rows_of_functions(test.file)
        own = [row for row in self.function_rows[test.file] if row["function"] == test.function.name]
        return _compared(node, in_calls(test.function.name, test.cases, own))

    def _rows_of_functions(self, file: Path) -> list[Row]:
        """Returns what the functions that one file tests return, with what is expected: a row for each call."""
        tests = [test for test in self.compiled.function_tests.values() if test.file == file]
        session = self.spark.fresh()
        for test in tests:
            columns = {one.name: one.type for one in test.function.arguments}
            rows = [(str(number), *case.given, case.expect) for number, case in enumerate(test.cases)]
            session.yaml_view(test.view, rows, {"number": "int", **columns, test.expected: test.function.returns})
        return list(session.rows(self.macro("function_tests", tests))[1])


def _messages(case: CompiledCase) -> list[FileMessage]:
    return messages_of(case.messages.name, case.messages.read_bytes(), case.query.encoding)


def _shown(value: Any) -> Any:
    """Returns a value of a failing row, as people read it."""
    return "null" if value is None else value


def _only(columns: Iterable[str], rows: Iterable[Row]) -> list[Row]:
    return [{column: row.get(column) for column in columns} for row in rows]


def _compared(node: Node, differences: list[str]) -> Result:
    message = counted(len(differences), "difference") if differences else ""
    status = "fail" if differences else "pass"
    return Result(node.name, "unit_test", status, message, tuple(differences[:SHOWN_FAILURES]), len(differences))


RECOUNTED = (
    "place string, messages_read bigint, messages_landed bigint, not_landed bigint, landed_twice bigint, "
    "removed bigint, first_offset bigint"
)


class Recount:
    """Counts messages again: creates the views `<source>_read_again` and, for files, `<source>_gone` and
    `<source>_changed`.
    """

    def __init__(self, run: Run) -> None:
        self.spark, self.tables, self.reads = run.spark, run.tables, run.reads

    def views(self, source: Source) -> tuple[str, ...]:
        """Counts the messages that were read and still exist; returns notes on those that cannot be counted."""
        topics = source.messages.topics
        return self._topics(source, topics) if topics else self._files(source)

    def _files(self, source: Source) -> tuple[str, ...]:
        checkpoint = self.tables.checkpoint(source.model)
        files, since = checkpoint.committed_files(), checkpoint.kept_since()
        remaining = [file for file in files if _exists(file)]
        gone = sorted(files.keys() - set(remaining))
        file_counts_view(
            self.spark, source.messages, self.reads(source.messages), remaining, f"{source.name}_read_again"
        )
        notes: list[str] = []
        if gone:
            counts = f"{len(gone)} of {len(files)} files that were read are gone"
            notes.append(f"{counts}, so their messages cannot be counted again: {gone[0]}")
        removed = self._removed(source, checkpoint, since) if since else []
        if removed:
            counts = f"{len(removed)} of {len(files)} files may have landed before {since}"
            notes.append(f"{counts}, and rows from before that day were removed: {removed[0]}")
        changed = differing_files(checkpoint)
        self.spark.rows_view(f"{source.name}_gone", [(file,) for file in [*gone, *removed]], "value string")
        self.spark.rows_view(f"{source.name}_changed", [(file,) for file in changed], "value string")
        return tuple(notes)

    def _removed(self, source: Source, checkpoint: Checkpoint, since: date) -> list[str]:
        """Returns the files whose rows may have been removed because they landed before a day."""
        landed = {row["file"] for row in self.spark.rows(self.tables.macro("landed_files", source))[1]}
        first_kept = datetime(since.year, since.month, since.day, tzinfo=timezone.utc).timestamp() * 1000
        files = checkpoint.committed_files()
        return [file for file, changed in files.items() if file not in landed and changed < first_kept]

    def _topics(self, source: Source, topics: Topics) -> tuple[str, ...]:
        checkpoint, view = self.tables.checkpoint(source.model), f"{source.name}_read_again"
        is_message, now = self.reads(source.messages)["is_message"], self._same_topics_now(topics, checkpoint)
        offset_views(
            self.spark, topics, is_message, checkpoint.first_offsets(), checkpoint.committed_offsets(), now, view
        )
        has_removed_rows = checkpoint.kept_since() is not None
        rows = self.spark.rows(self.tables.macro("topics_recounted", source, has_removed_rows))[1]
        self.spark.rows_view(view, [tuple(row.values()) for row in rows], RECOUNTED)
        removed = [f"{row['removed']} of {row['place']}" for row in rows if row["removed"]]
        if not removed:
            return ()
        return (f"messages that landed are no longer in Kafka and cannot be counted again: {enumeration(removed)}",)

    def _same_topics_now(self, topics: Topics, checkpoint: Checkpoint) -> TopicsNow | None:
        """Returns what the broker has of the topics that were read, except topics that were created again."""
        now, known = topics_now(self.spark, topics, checkpoint.next_offsets()), checkpoint.topic_ids()
        return now and now.only([topic for topic, id_ in now.ids.items() if known.get(topic, id_) == id_])


def _exists(file: str) -> bool:
    """Returns True if a file is still there, or if only Spark can look it up."""
    return not file.startswith("file:") or Path(plain_path(file)).is_file()
