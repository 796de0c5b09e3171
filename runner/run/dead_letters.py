"""Dead letters that have landed: in groups, one by one, and what their formats make of them now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.engine.erasures import without_erased
from runner.project.inputs import Source
from runner.run.stale import check_opened

if TYPE_CHECKING:
    from runner.run.run import Run

# The view of the dead letters that were chosen.
LETTERS = "dead_letters_chosen"
Row = Mapping[str, Any]


class Chosen(NamedTuple):
    """Which dead letters: of a reason, of a table (the last parts of its name), landed since an instant, with an id of
    their own or of their group; what is empty stands for all.
    """

    reason: str = ""
    table: tuple[str, ...] = ()
    since: str = ""
    id: str = ""


class DeadLetters:
    """The dead letters of some sources, as the tables are now. Needs a session."""

    def __init__(self, run: Run, sources: Iterable[Source], chosen: Chosen) -> None:
        self.run, self.sources, self.spark, self.macro = run, tuple(sources), run.spark, run.macro
        for source in self.sources:
            run.views.make(run.graph.nodes[source.model])
        self.spark.view(LETTERS, self.macro("dead_letters_of", self.sources, chosen))

    def groups(self) -> list[Row]:
        """Returns the groups, the largest first."""
        return list(self.spark.rows(self.macro("dead_letter_groups", LETTERS))[1])

    def newest(self, count: int | None = 1, opens: bool = False) -> list[Row]:
        """Returns the dead letters that have landed last, at most `count` of them, None for all, with all columns. If
        it `opens`, texts that were sealed are as they came, as far as they can be opened.
        """
        letters = LETTERS
        if opens and self.run.project.mask_secret:
            letters = f"{LETTERS}__opened"
            of_bytes = [source.name for source in self.sources if source.format.message.encoding == "avro"]
            opened = self.macro("dead_letters_opened", LETTERS, of_bytes)
            self.spark.register((), self.run.library.called_by(opened))
            self.spark.view(letters, opened)
        return list(self.spark.rows(self.macro("newest_dead_letters", letters), count)[1])

    def tried(self, places: bool = False) -> list[Row]:
        """Returns the groups with what the formats make of their messages now: how many would `land`, as which rows,
        and what is `still` wrong with the others. With `places`, puts those that would land where the next run of their
        source lands them. They land once, also if this is interrupted: they are moved there as a whole.
        """
        return [row for source in self.sources for row in self._tried(source, places)]

    def _tried(self, source: Source, places: bool) -> list[Row]:
        check_opened(self.run, source, self.run.project.mask_secret)
        compiled = self.run.compiled.nodes[source.model]
        messages, tried = f"{source.name}_messages", f"{source.name}__tried"
        self.spark.view(messages, self.macro("messages_of_dead_letters", LETTERS, source, compiled.encoding))
        self.spark.register(compiled.functions, compiled.sql_functions)
        with self.spark.computed_view(
            tried, self.macro("messages_tried", without_erased(self.run.tables, source.model, compiled.sql))
        ):
            groups: list[Row] = list(self.spark.rows(self.macro("groups_tried", LETTERS, tried, source))[1])
            if places and any(row["land"] for row in groups):
                to_land = self.macro("messages_to_land", messages, tried)
                self.run.tables.place_again(source.model, to_land, self.run.run_id)
        return groups

    def are_waiting(self, source: Source) -> bool:
        """Returns True if messages were placed that have not landed yet."""
        return bool(self.run.tables.checkpoint(source.model).again_waiting())
