"""Mirrors that follow streams: while the streams run, one mirror after the other takes in what has landed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from runner.project.mirror import Mirror
from runner.project.nodes import Node
from runner.run.results import Result


class Followed(NamedTuple):
    """A mirror that was brought up to date. `behind` is the number of messages that have landed since that began."""

    node: Node
    number: int
    result: Result
    behind: int


@dataclass
class Follower:
    """A mirror that follows streams. `number` is its number among the nodes of a run, `behind` the number of messages
    that have landed and that its table does not have. `is_due` is True if it has to be brought up to date.
    """

    node: Node
    number: int
    mirror: Mirror
    behind: int = 0
    is_due: bool = True


@dataclass
class Following:
    """The mirrors of one run. `build` brings one mirror up to date, in any thread. A mirror is due when the run begins,
    and whenever messages have landed for it.
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
        """Yields the mirror that has been brought up to date since the last call, if there is one; then begins the next
        one.
        """
        if self.running and not self.running[1].done():
            return
        yield from self._ended()
        # The mirror that is furthest behind goes first; of mirrors that are equally far behind, the first in their
        # order.
        due = max((one for one in self.followers if one.is_due), key=lambda one: one.behind, default=None)
        if due:
            due.is_due, due.behind = False, 0
            self.running = due, self.pool.submit(self.build, due.node)

    def end(self) -> Iterator[Followed]:
        """Waits for the mirror that is being built, and yields it; no other mirror begins."""
        try:
            yield from self._ended()
        finally:
            self.pool.shutdown()

    def _ended(self) -> Iterator[Followed]:
        if self.running:
            (follower, future), self.running = self.running, None
            yield Followed(follower.node, follower.number, future.result(), follower.behind)


def following(build: Callable[[Node], Result], mirrors: Collection[Node], first: int) -> Following:
    """Returns the object that keeps mirrors up to date. The numbers of the mirrors begin with `first`."""
    found = [(node, node.model.mirror) for node in mirrors if node.model and node.model.mirror]
    return Following(build, [Follower(node, number, mirror) for number, (node, mirror) in enumerate(found, first)])
