"""The recording of a run: results of nodes and of batches are kept with their times."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from runner.errors import RunnerWarning
from runner.project.node_results import NodeResults
from runner.project.nodes import Node
from runner.run.results import Batch, Result
from runner.run.schedule import do_nothing

if TYPE_CHECKING:
    from runner.run.continuous import Watcher
    from runner.run.openlineage import LineageEvents
    from runner.run.run import Run

MAINTAIN = "maintain"


class Recorder:
    """Passes the events of a run on to its report, and records them: a result when its node has ended, so that a run
    that is killed leaves what it has done. `warn` is told once if it cannot be recorded, `saw` is called with each
    result that is recorded, `wrote` after each batch. `events` are told which nodes start and end.
    """

    def __init__(
        self,
        run: Run,
        watcher: Watcher,
        warn: Callable[[RunnerWarning], None],
        wrote: Callable[[], None] = do_nothing,
        saw: Callable[[Node, Result], None] | None = None,
        events: LineageEvents | None = None,
    ) -> None:
        self.events = events
        self.run, self.watcher, self.warn, self.wrote, self.saw = run, watcher, warn, wrote, saw
        self.results = NodeResults(run.project)
        self.nodes = {node.name: node for node in run.nodes}
        # The models whose batches were recorded one by one.
        self.streamed: set[str] = set()
        # Node -> when its newest result ended.
        self.ended: dict[str, datetime] = {}
        self.has_warned = False

    def started(self, node: Node, number: int, total: int) -> None:
        self._begun(node)
        self.watcher.started(node, number, total)

    def opened(self, node: Node, number: int, total: int) -> None:
        self._begun(node)
        self.watcher.opened(node, number, total)

    def _begun(self, node: Node) -> None:
        if self.events:
            self.events.started(self.run, node)

    def say(self, text: str) -> None:
        self.watcher.say(text)

    def finished(self, node: Node, result: Result, number: int, total: int) -> None:
        self.watcher.finished(node, result, number, total)
        if self.events:
            self.events.ended(self.run, node, result)
        if self.run.command == MAINTAIN:
            if not result.has_failed:
                self._record(lambda: self.results.maintained(node, _text(result.ended)))
        elif node.name in self.streamed:
            # The result of a stream is the sum of its batches, which are recorded.
            self._add(
                node, replace(result, rows={}, reasons={}, waived={}, seconds=0.0), is_sum=result.status != "error"
            )
        else:
            self._add(node, result)

    def progress(self, name: str, batch: Batch) -> None:
        self.watcher.progress(name, batch)
        landed, node = batch.landed, self.nodes[name]
        if node.model and node.model.source:
            self.run.landing.count_open(node.model.source, landed)
        self.streamed.add(name)
        result = replace(
            Result(name, "model", *batch.verdict, seconds=batch.seconds),
            rows=landed.numbers,
            reasons=landed.reasons,
            waived=landed.waived,
        )
        self._add(node, result, batch.behind)
        self.wrote()

    def followed(self, name: str, result: Result, behind: int) -> None:
        self.watcher.followed(name, result, behind)
        self._add(self.nodes[name], result)
        self.wrote()

    def idle(self, busy: Iterable[str], behind: int | None) -> None:
        self.watcher.idle(busy, behind)
        self.wrote()

    def _add(self, node: Node, result: Result, behind: int | None = None, is_sum: bool = False) -> None:
        """Records a result. One that is the sum of others says nothing new."""
        # What a signal keeps from running was not skipped because of anything in the project. A mirror that follows
        # streams is reported a second time at their end.
        is_of_signal = result.status == "skipped" and self.run.signals.count
        if is_of_signal or self.ended.get(node.name) == result.ended:
            return
        self.ended[node.name] = result.ended
        entry = {
            "ended": _text(result.ended),
            "status": result.status,
            "command": self.run.command,
            "run_id": self.run.run_id,
            "seconds": round(result.seconds, 3),
            "message": "\n".join([result.message, *result.notes]).strip(),
            "failures": result.failures,
            "rows": dict(result.rows),
            "reasons": dict(result.reasons),
            "waived": dict(result.waived),
            "behind": behind,
            "is_incomplete": result.is_incomplete,
        }
        source = node.model and node.model.source
        open_letters = self.run.open_letters.get(source.name) if source else None
        self._record(lambda: self.results.add(node, entry, open_letters))
        if self.saw and not is_sum:
            self.saw(node, result)

    def _record(self, write: Callable[[], None]) -> None:
        """Writes a record. A run does not fail because it cannot: messages land all the same."""
        try:
            write()
        except OSError as error:
            if not self.has_warned:
                self.has_warned = True
                what = f'results are not recorded in "{self.results.folder}": {error.strerror}'
                self.warn(RunnerWarning("results-unrecorded", what, hint="runner status lacks them"))


def _text(moment: datetime) -> str:
    return f"{moment.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
