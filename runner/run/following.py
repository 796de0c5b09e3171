"""Mirrors that follow streams: beside these, one after the other, they take in what has landed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from runner.project.mirror import Mirror
from runner.project.nodes import Node
from runner.run.results import Result


class Followed(NamedTuple):
    """A mirror that was brought up to date. `behind` is the number of messages that have landed since this began."""

    node: Node
    number: int
    result: Result
    behind: int


@dataclass
class Follower:
    """A mirror, its number among the nodes of a run, and the messages that have landed but that it does not have."""

    node: Node
    number: int
    mirror: Mirror
    behind: int = 0
    is_due: bool = True


@dataclass
class Following:
    """The mirrors of one run. `build` brings one up to date, in any thread. Each is due when the run begins, and
    whenever messages have landed for it.
    """

    build: Callable[[Node], Result]
    followers: Collection[Follower]
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    running: tuple[Follower, Future[Result]] | None = None

    def landed(self, model: str, messages: int) -> None:
        """Records that a model has landed messages."""
        for follower in self.followers:
            if model in follower.mirror.models:
                follower.behind += messages
                follower.is_due = True

    def look(self) -> Iterator[Followed]:
        """The mirror that has been brought up to date since the last call, if one has; then the next one begins."""
        if self.running and not self.running[1].done():
            return
        yield from self._ended()
        # The one that is furthest behind goes first; of those that are even the first.
        due = max((one for one in self.followers if one.is_due), key=lambda one: one.behind, default=None)
        if due:
            due.is_due, due.behind = False, 0
            self.running = due, self.pool.submit(self.build, due.node)

    def end(self) -> Iterator[Followed]:
        """Waits for the mirror that is being built; no other begins."""
        try:
            yield from self._ended()
        finally:
            self.pool.shutdown()

    def _ended(self) -> Iterator[Followed]:
        if self.running:
            (follower, future), self.running = self.running, None
            yield Followed(follower.node, follower.number, future.result(), follower.behind)


def following(build: Callable[[Node], Result], mirrors: Collection[Node], first: int) -> Following:
    """What keeps mirrors up to date, whose numbers begin with `first`."""
    found = [(node, node.model.mirror) for node in mirrors if node.model and node.model.mirror]
    return Following(build, [Follower(node, number, mirror) for number, (node, mirror) in enumerate(found, first)])
