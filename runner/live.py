"""Shows the work under way: as lines at the bottom of a terminal that are drawn again and again, or as plain lines."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TextIO

from runner.counts import counted, grouped
from runner.grid import shortened, visible

# On a terminal: the seconds between two drawings of the lines, and between two measurements, which are rarer because
# Spark has to answer them.
DRAW_SECONDS = 0.25
MEASURE_SECONDS = 1.0
PLAIN_SECONDS = 10.0
# Rates are averages over this time.
RATE_SECONDS = 10.0
# The end of a command waits no longer than this for an answer of Spark that nobody needs any more.
CLOSE_SECONDS = 2.0
BAR = 20
UP_AND_CLEAR = "\x1b[{}F\x1b[J"


@dataclass(frozen=True)
class Measure:
    """The state of a piece of work: the rows that it has `read` and `written`, and the `share` of all that it will
    read, from 0 to 1, None if its end is not known.
    """

    read: int = 0
    written: int = 0
    share: float | None = None


Measured = Callable[[str], Measure | None]


@dataclass
class Work:
    """A piece of work under way. `number` says which of all pieces it is, such as `2 of 5 `."""

    name: str
    what: str
    number: str = ""
    began: float = field(default_factory=time.monotonic)
    said: float = field(default_factory=time.monotonic)
    measure: Measure = field(default_factory=Measure)
    history: deque[tuple[float, int]] = field(default_factory=deque)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def rate(self) -> int:
        """The rows that were read per second, lately."""
        if len(self.history) < 2:
            return 0
        (before, few), (now, many) = self.history[0], self.history[-1]
        return round((many - few) / (now - before)) if now > before else 0

    def measured(self, measure: Measure) -> None:
        now = time.monotonic()
        self.measure = measure
        self.history.append((now, measure.read))
        while len(self.history) > 2 and self.history[0][0] < now - RATE_SECONDS:
            self.history.popleft()

    @property
    def progress(self) -> str:
        """The rows, rate and time of the work in words."""
        counts = [f"{counted(self.measure.read, 'row')} read"] if self.measure.read else []
        counts += [f"{grouped(self.measure.written)} written"] if self.measure.written else []
        counts += [f"{grouped(self.rate)}/s"] if self.rate else []
        return ", ".join([*counts, duration(self.seconds)])

    @property
    def line(self) -> str:
        """The line of the work on a terminal."""
        share = f"{bar(self.measure.share)} " if self.measure.share is not None else ""
        return f"{self.number}{self.what}  {share}{self.progress}"


class Live:
    """Shows the work that was begun and has not ended, from a thread that runs only as long as there is work.
    `terminal` is where lines are drawn. If there is none, it is None, and `say` is called with each piece of work that
    takes long. All output goes through `above`, so that it does not mix with these lines.
    """

    def __init__(self, terminal: TextIO | None, say: Callable[[Work], None]) -> None:
        self.terminal, self.say = terminal, say
        self.measured: Measured | None = None
        self.works: dict[str, Work] = {}
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._drawn = 0

    def begin(self, work: Work) -> None:
        with self.above():
            self.works[work.name] = work
            if self._thread is None:
                self._thread = threading.Thread(target=self._show, name="runner-live", daemon=True)
                self._thread.start()

    def end(self, name: str) -> None:
        with self.above():
            self.works.pop(name, None)
            self._changed.notify_all()

    def close(self) -> None:
        """Ends all work that nobody has ended, and the thread."""
        with self.above():
            self.works.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread:
            # The thread may wait for a JVM that does not answer any more.
            thread.join(CLOSE_SECONDS)

    @contextmanager
    def above(self) -> Iterator[None]:
        """Lets the block print: the lines are gone in the block, and come back below what was printed."""
        with self._lock:
            self._clear()
            try:
                yield
            finally:
                self._draw()

    def _show(self) -> None:
        measured_at = 0.0
        while True:
            with self._lock:
                self._changed.wait(DRAW_SECONDS if self.terminal else MEASURE_SECONDS)
                works = list(self.works.values())
                if not works:
                    self._thread = None
                    return
            if time.monotonic() - measured_at >= MEASURE_SECONDS:
                self._measure(works)
                measured_at = time.monotonic()
            if self.terminal:
                self._redraw()
            else:
                self._say(works)

    def _measure(self, works: list[Work]) -> None:
        # Measuring runs without the lock: it may take long, and nobody may wait for it.
        for work in works:
            # Work may end, and Spark with it, while it is measured: other code reports that.
            with suppress(Exception):
                if self.measured and (measure := self.measured(work.name)):
                    work.measured(measure)

    def _say(self, works: list[Work]) -> None:
        for work in works:
            now = time.monotonic()
            with self._lock:
                if now - work.said >= PLAIN_SECONDS and work.name in self.works:
                    work.said = now
                    self.say(work)

    # --- on a terminal

    def _redraw(self) -> None:
        with self.above():
            pass

    def _clear(self) -> None:
        if self.terminal and self._drawn:
            self._write(UP_AND_CLEAR.format(self._drawn))
            self._drawn = 0

    def _draw(self) -> None:
        if not self.terminal or not self.works:
            return
        width, height = size_of(self.terminal)
        lines = [shortened(visible(work.line), width - 1) for work in self.works.values()]
        if len(lines) > height - 2:
            lines = [*lines[: height - 3], f"and {len(lines) - height + 3} more"]
        self._write("".join(f"{line}\n" for line in lines))
        self._drawn = len(lines)

    def _write(self, text: str) -> None:
        if self.terminal:
            self.terminal.write(text)
            self.terminal.flush()


def size_of(terminal: TextIO) -> tuple[int, int]:
    """Returns the columns and lines of a terminal; 80 and 24 if the terminal does not know them."""
    try:
        columns, lines = os.get_terminal_size(terminal.fileno())
    except (OSError, ValueError):
        return 80, 24
    return columns or 80, lines or 24


def bar(share: float) -> str:
    """Returns a bar that shows a share from 0 to 1, with its percentage.

    >>> bar(0.5), bar(1.7)
    ('[##########----------]  50%', '[####################] 100%')
    """
    share = min(max(share, 0.0), 1.0)
    filled = int(share * BAR)
    return f"[{'#' * filled}{'-' * (BAR - filled)}] {int(share * 100):3d}%"


def duration(seconds: float) -> str:
    """Returns a number of seconds in words.

    >>> duration(7.9), duration(125), duration(3725)
    ('7s', '2m 05s', '1h 02m')
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
