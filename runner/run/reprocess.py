"""Messages that are kept, or still in their topic, are read again: what is otherwise with the spec as it is now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.counts import counted
from runner.engine.erasures import without_erased
from runner.engine.messages import source_view
from runner.project.inputs import Source
from runner.run.stale import check_opened, made_by_now, stale_batches

if TYPE_CHECKING:
    from runner.run.run import Run

Row = Mapping[str, Any]
# More tables than these are not named: all tables of a source count as changed.
MOST_TABLES = 1_000
SAMPLE = 1_000


class Slice(NamedTuple):
    """The messages of a changelog: those of a table (the last parts of its name), with a reason, landed since an
    instant and before another, in some batches (from one up to before another); at `most` so many, the newest ones.
    What is empty stands for all, and so does None.
    """

    table: tuple[str, ...] = ()
    reason: str = ""
    since: str = ""
    until: str = ""
    batches: Sequence[tuple[int, int]] | None = None
    most: int | None = None

    @property
    def is_of_batches(self) -> bool:
        """True if nothing but batches chooses the messages."""
        return self == Slice(batches=self.batches)


class Counted(NamedTuple):
    """How many messages a slice has, and of how many the text is kept, or still in their topic."""

    messages: int
    kept: int


class Reprocessing:
    """The messages of a slice of a source that are kept or still in its topic, and what is otherwise now. Needs a
    session.
    """

    def __init__(self, run: Run, source: Source, chosen: Slice) -> None:
        self.run, self.source, self.chosen = run, source, chosen
        self.spark, self.macro, self.compiled = run.spark, run.macro, run.compiled.nodes[source.model]
        self.kept, self.now = f"{source.name}__kept", f"{source.name}__now"
        self.otherwise, self.in_topic = f"{source.name}__otherwise", ""

    @classmethod
    def of_stale(cls, run: Run, source: Source, chosen: Slice) -> Reprocessing:
        """Returns the messages of a slice whose rows an earlier spec has made."""
        made_by = made_by_now(run.tables.checkpoint(source.model), run.fingerprint_of(source))
        return cls(run, source, chosen._replace(batches=stale_batches(made_by)))

    @classmethod
    def sampled(cls, run: Run, source: Source, batches: Sequence[tuple[int, int]]) -> str:
        """Returns how many of the newest messages of some batches have other rows now, as a sentence; empty if the text
        of none is kept.
        """
        run.tables.changelog_view(source.model)
        sample = cls(run, source, Slice(batches=batches, most=SAMPLE))
        with sample.compared():
            (row,) = sample.spark.rows(sample.macro("sample_otherwise", sample.kept, sample.otherwise))[1]
        messages = counted(row["messages"], "message")
        return f"of the newest {messages}, {row['otherwise']:,} have other rows now" if row["messages"] else ""

    def count(self) -> Counted:
        """Counts the messages of the slice. Those whose text is not kept may still be in a topic: from then on they are
        read there.
        """
        (row,) = self.spark.rows(self.macro("messages_in_slice", self.source, self.chosen))[1]
        if row["kept"] == row["messages"] or not self.source.messages.topics:
            return Counted(row["messages"], row["kept"])
        self.in_topic = f"{self.source.name}__in_topic"
        source_view(self.spark, self.source.messages, self.run.reads(self.source.messages), self.in_topic)
        self._show_kept()
        (found,) = self.spark.rows(self.macro("messages_counted", self.kept))[1]
        return Counted(row["messages"], found["messages"])

    def _show_kept(self) -> None:
        kept = self.macro("messages_kept", self.source, self.chosen, self.compiled.encoding, self.in_topic)
        self.spark.view(self.kept, kept)

    @contextmanager
    def compared(self) -> Iterator[None]:
        """Reads the messages again; inside the block it is known which rows are otherwise."""
        macro, source = self.macro, self.source
        check_opened(self.run, source, self.run.project.mask_secret)
        messages = f"{source.name}_messages"
        self._show_kept()
        self.spark.view(messages, macro("messages_of_kept", self.kept))
        self.spark.register(self.compiled.functions, self.compiled.sql_functions)
        self.spark.view(self.now, macro("rows_now", without_erased(self.run.tables, source.model, self.compiled.sql)))
        otherwise = macro("rows_otherwise", source, self.kept, self.now)
        with self.spark.computed_view(self.otherwise, otherwise):
            yield

    def differences(self) -> list[Row]:
        """Returns the rows that are otherwise, those that are so in the same way as one, with an example."""
        return list(self.spark.rows(self.macro("rows_otherwise_grouped", self.otherwise))[1])

    def place(self) -> None:
        """Puts the messages of which a row is otherwise where the next run of their source lands them: once, in place
        of the rows that they have, also if this is interrupted.
        """
        found = self.spark.rows(self.macro("tables_otherwise", self.otherwise), MOST_TABLES + 1)[1]
        tables = [list(row["names"]) for row in found if row["names"]]
        if len(found) > MOST_TABLES or any(row["is_ddl"] for row in found):
            tables = [[]]
        messages = self.macro("messages_otherwise", self.kept, self.otherwise)
        self.run.tables.place_again(self.source.model, messages, self.run.run_id, tables)

    def is_settled(self) -> None:
        """Records that no row is left that an earlier spec has made."""
        checkpoint = self.run.tables.checkpoint(self.source.model)
        checkpoint.write_fingerprints([self.run.fingerprint_of(self.source)])
