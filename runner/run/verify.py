"""Compares mirrors with the tables of their databases, and keeps what differs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple

from runner.counts import counted, enumeration, grouped
from runner.engine.databases import OtherTable, connect, damage_told, file_of, table_of
from runner.engine.erasures import erasures_of, of_tables
from runner.engine.errors import QueryFailed
from runner.engine.values import iso
from runner.errors import RunnerWarning
from runner.project.databases import Database, Dump
from runner.project.inputs import SHOWN
from runner.project.masks import mask_in
from runner.project.mirror import Mirror
from runner.project.nodes import Node
from runner.render import name as quoted
from runner.run.comparison import Columns, ComparedColumn, Comparison, Range, columns_of, kind_of, ranges_of
from runner.run.repairs import NotRepaired, Place, Repairs, why_refused
from runner.run.results import Result
from runner.run.verified import COLUMNS, DIFFERENCES, VERIFIED, show_results

if TYPE_CHECKING:
    from runner.run.run import Run

# What is said of differences of each kind.
SAID = {
    "missing": "{} missing here",
    "extra": "{} not in the database",
    "different": "{} with other values{}",
}


@dataclass(frozen=True)
class Options:
    """The options of a verification. At most `parallel` queries run in the database at a time, each reads about `rows`
    rows. `changed` is the name of the column with the time of the last change of a row, empty if there is none. If it
    `repairs`, rows that differ are written as repairs, or only counted unless it `writes`. `taken_at` is the instant of
    files that mirrors are compared with.
    """

    parallel: int = 1
    rows: int = 1_000_000
    changed: str = ""
    shows_values: bool = False
    repairs: bool = False
    writes: bool = True
    taken_at: str = ""


class Verified(NamedTuple):
    """A row of the table of results."""

    mirror: str
    verified_at: str
    verified_through: str | None
    rows: int
    differences: int
    open: int
    not_compared: list[str]


class NotCompared(Exception):
    """A mirror that cannot be compared, which is no failure of the others."""


class Verification:
    """Compares the mirrors of a run with a database or a dump. `warnings` are those that came up since the caller has
    last taken them.
    """

    def __init__(self, run: Run, place: Database | Dump, options: Options) -> None:
        self.run, self.tables, self.spark, self.macro = run, run.tables, run.spark, run.macro
        self.place, self.options = place, options
        now = datetime.now(timezone.utc)
        self.at, self.repairs = iso(now), Repairs(run, now, options.taken_at, options.writes)
        self.rows: list[Verified] = []
        self.differences: list[str] = []
        self.warnings: list[RunnerWarning] = []
        if isinstance(place, Database):
            connect(self.spark, place)

    def verify(self, node: Node) -> Result:
        """Compares one mirror; raises QueryFailed, and RunnerError for a file that cannot be read."""
        mirror = node.model and node.model.mirror
        assert mirror
        name = f"verified_{mirror.name}"
        try:
            table = self._table(mirror)
            self.run.views.make(node)
            columns = self._columns(mirror, table)
            until, notes = self._told_until(mirror)
            place, repaired = self._place(mirror, columns)
            comparison = self._comparison(mirror, table, columns, until, place is not None)
        except NotCompared as why:
            return Result(name, "test", "warn", f"not compared: {why}")
        dump_file = self.place.files[mirror.name] if isinstance(self.place, Dump) else None
        with damage_told(dump_file):
            counts, views = self._compared(comparison, table)
        if place and any(counts[kind] for kind in SAID):
            repaired = [self.repairs.write(comparison, views, place)]
        return self._result(comparison, table, columns, counts, views, [*notes, *repaired])

    def _table(self, mirror: Mirror) -> OtherTable:
        """Returns the table that a mirror is compared with; raises NotCompared."""
        if not mirror.key and mirror.without_key not in ("count", "whole_row"):
            raise NotCompared("the mirror has no key: name its key, or choose without_key: count or whole_row")
        if len({table.source.name for table in mirror.tables}) < len(mirror.tables):
            raise NotCompared("the mirror has the rows of several tables")
        place = self.place
        found = (
            table_of(self.spark, place, mirror) if isinstance(place, Database) else file_of(self.spark, place, mirror)
        )
        if found is None:
            kind = "table" if isinstance(place, Database) else "file of the table"
            raise NotCompared(f'there is no {kind} "{".".join(mirror.tables[-1].name)}" in {place.shown}')
        return found

    def _columns(self, mirror: Mirror, table: OtherTable) -> Columns:
        """Returns the columns to compare; raises NotCompared if those of the key are not among them."""
        columns = columns_of(mirror, table.columns, table.documents)
        names = {one.name for one in columns.compared}
        if masked := [key for key in mirror.key if mask_in(mirror, key) != SHOWN]:
            raise NotCompared(f"the key is masked: {', '.join(masked)}")
        if lacking := [key for key in mirror.key if key not in names]:
            raise NotCompared(f"{table.place} lacks the key: {', '.join(lacking)}")
        if not names:
            raise NotCompared(f"{table.place} has none of the columns of the mirror")
        if columns.missing:
            what = f'{table.place} lacks columns of "{mirror.name}": {enumeration(columns.missing)}'
            self.warnings.append(RunnerWarning("verify-columns", what, hint="the other columns are compared"))
        return columns

    def _told_until(self, mirror: Mirror) -> tuple[str | None, list[str]]:
        """Returns the instant up to which the mirror knows what the database did, None if messages name no times, and
        notes.
        """
        recorded = self.tables.progress(mirror.name).recorded()
        if recorded is None:
            raise QueryFailed(f'it is not known what "{mirror.name}" has read: runner run -s {mirror.name}')
        told = []
        for table in mirror.logged:
            model = table.source.model
            self.run.views.make(self.run.graph.nodes[model])
            batch = recorded.read[model].batch if model in recorded.read else -1
            told.append({"changelog": model, "batch": batch, "name": table.name[-1]})
        (row,) = self.spark.rows(self.macro("told_until", told))[1]
        if not row["behind"]:
            return row["landed_until"], []
        behind = f"{counted(row['behind'], 'change')} of the table landed after the mirror was built"
        return row["read_until"], [f"{behind}: runner run -s {mirror.name}"]

    def _place(self, mirror: Mirror, columns: Columns) -> tuple[Place | None, list[str]]:
        """Returns the place of repairs of a mirror, None if it is not to be repaired; and a note why not."""
        if not self.options.repairs or why_refused(mirror):
            return None, []
        try:
            return self.repairs.place(mirror, not columns.left_out), []
        except NotRepaired as why:
            return None, [f"not repaired: {why}"]

    def _comparison(
        self, mirror: Mirror, table: OtherTable, columns: Columns, until: str | None, tells_rows: bool
    ) -> Comparison:
        by_name = {one.name: one for one in columns.compared}
        key = tuple(by_name[name] for name in mirror.key) if mirror.key else columns.compared
        changed = self.options.changed.lower()
        found = next((name for name in table.columns if changed and name.lower() == changed), "")
        if changed and not found:
            what = f'{table.place} has no column "{self.options.changed}"'
            hint = "every difference counts there, also of rows that have changed since"
            self.warnings.append(RunnerWarning("verify-columns", what, hint=hint))
        return Comparison(
            *(mirror, table.rows, key, columns.compared),
            changed=found,
            until=until,
            shows_values=self.options.shows_values,
            tells_rows=tells_rows,
        )

    def _compared(self, comparison: Comparison, table: OtherTable) -> tuple[Counter[str], list[str]]:
        """Returns the numbers of rows by kind, and the views of rows that differ: one for each part of the table."""
        counts, views = Counter[str](), list[str]()
        for number, ranges in enumerate(self._parts(comparison, table)):
            view = f"{comparison.mirror.name}__compared_{number}"
            part = replace(comparison, ranges=ranges)
            told = self.spark.kept_view(view, self._but_erased(part), self.macro("compared_counts"), "kind <> 'erased'")
            counts += Counter(json.loads(told))
            views.append(view)
        return counts, views

    def _but_erased(self, comparison: Comparison) -> str:
        """Returns the query that compares rows; a row that is missing because its key was erased is no difference."""
        compared, tables = self.macro("compared", comparison), comparison.mirror.logged
        named = [(table, one) for table in tables for one in erasures_of(self.tables, table.source.model)]
        erased = [one for table, one in named if of_tables([table.name], one.names)]
        return self.macro("compared_but_erased", compared, comparison, erased) if erased else compared

    def _parts(self, comparison: Comparison, table: OtherTable) -> Iterator[tuple[Range, ...]]:
        """Yields the ranges of keys that are compared together, as many as may be read at the same time."""
        column, many = comparison.key[0], self.options.parallel
        bounds: list[int] = []
        if table.is_ranged and comparison.mirror.key and _is_whole(column, table):
            count = self.tables.count(comparison.mirror.name)
            parts = max(-(-count // self.options.rows), min(many, count))
            if parts > 1:
                sql = self.macro("key_percentiles", comparison.mirror.name, column.name, parts)
                bounds = [int(one) for one in self.spark.rows(sql)[1][0]["bounds"] or ()]
        ranges = ranges_of(bounds)
        for start in range(0, len(ranges), many):
            yield tuple(ranges[start : start + many])

    def _result(
        self,
        comparison: Comparison,
        table: OtherTable,
        columns: Columns,
        counts: Counter[str],
        views: list[str],
        notes: list[str],
    ) -> Result:
        name, until = comparison.mirror.name, comparison.until
        different = sum(counts[kind] for kind in SAID)
        view = f"{name}__differences"
        self.spark.view(view, self.macro("differences_of", comparison, views, self.at))
        self.differences.append(view)
        found = Verified(name, self.at, until, counts["here"], different, counts["open"], columns.left_out)
        self.rows.append(found)
        read = f"{counted(counts['read'], 'row')} read of {table.place}"
        notes = [read, f"the mirror knows what happened up to {until or 'an instant that no message tells'}", *notes]
        if counts["erased"]:
            notes.append(f"missing here because they were erased (runner erase): {counted(counts['erased'], 'row')}")
        if counts["open"]:
            notes.append(f"left out, since they have changed after that: {counted(counts['open'], 'row')}")
        if columns.unlike:
            notes.append(f"values that cannot be compared: {enumeration(columns.unlike)}")
        if columns.unmirrored:
            notes.append(f"columns that the mirror lacks: {enumeration(columns.unmirrored)}")
        if not different:
            same = "1 row is the same" if counts["here"] == 1 else f"{grouped(counts['here'])} rows are the same"
            return Result(f"verified_{name}", "test", "pass", same, tuple(notes), 0)
        if not comparison.changed:
            notes.append("rows that have changed after that differ too: --changed-column NAME leaves them out")
            if comparison.tells_rows:
                notes.append("repairs of such rows do no harm: the changes that are still to land win over them")
        notes.append(f"runner show --inline \"select * from {DIFFERENCES} where mirror = '{name}'\"")
        message = self._said(counts, view)
        return Result(f"verified_{name}", "test", "fail", message, tuple(notes), different)

    def _said(self, counts: Counter[str], view: str) -> str:
        """Returns in words how many rows differ, and how."""
        columns = [row["column"] for row in self.spark.rows(self.macro("columns_differing", view))[1]]
        named = f" (columns: {enumeration(columns)})" if columns else ""
        parts = [text.format(grouped(counts[kind]), named) for kind, text in SAID.items() if counts[kind]]
        total = sum(counts[kind] for kind in SAID)
        return f"{'1 row differs' if total == 1 else f'{grouped(total)} rows differ'}: {', '.join(parts)}"

    def keep(self) -> None:
        """Writes the results of the mirrors that were compared, in place of earlier results of these mirrors."""
        if not self.rows:
            return
        mirrors = [row.mirror for row in self.rows]
        new = {
            VERIFIED: [self.macro("verified_row", row).strip() for row in self.rows],
            DIFFERENCES: [self.macro("all_rows", quoted(view)).strip() for view in self.differences],
        }
        # The differences are written first: results without their rows would be wrong.
        for table in (DIFFERENCES, VERIFIED):
            show_results(self.tables, table)
            self.tables.replace(table, self.macro("results_kept", table, COLUMNS[table], mirrors, new[table]))


def _is_whole(column: ComparedColumn, table: OtherTable) -> bool:
    """Returns True if a column has whole numbers on both sides, which databases and Spark order alike."""
    types = (column.type, table.columns[column.other])
    return all(kind_of(one) == "number" and ("," not in one or one.endswith(",0)")) for one in types)
