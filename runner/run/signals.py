"""Signals to stop a run: the first ends it in order, the second at once."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# After the second signal a run needs this long to write down what it has done; fingers are faster.
SECONDS_TO_END = 5.0


class StopSignals:
    """Counts Ctrl-C and SIGTERM in the block. Until `count_only` is called, they also raise KeyboardInterrupt."""

    def __init__(self) -> None:
        self.count = 0
        self.only_count = False
        self.cancel: Callable[[], None] = _do_nothing
        self._end_at_once: Callable[[], None] = _do_nothing
        self._ended_at = 0.0

    def __enter__(self) -> StopSignals:
        # Only the main thread gets signals.
        is_main = threading.current_thread() is threading.main_thread()
        self._before = {number: signal.getsignal(number) for number in SIGNALS} if is_main else {}
        self._listen()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)

    def count_only(self, cancel: Callable[[], None], end_at_once: Callable[[], None]) -> None:
        """From now on the run looks at `count`, and calls `cancel` to end what runs in all threads. The second signal
        calls `end_at_once`: nobody else may be able to, while all threads wait for Spark. A run that has not ended some
        seconds later is broken off by the next one.
        """
        self.only_count, self.cancel, self._end_at_once = True, cancel, end_at_once
        # A new Spark session has put its own handler here, which would cancel all jobs and raise.
        self._listen()

    def _listen(self) -> None:
        for number in self._before:
            signal.signal(number, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        # Once it only counts, nothing is printed or raised here: the main thread may be in the middle of a line, or of
        # a call to the JVM.
        self.count += 1
        if not self.only_count or (self.count > 2 and time.monotonic() - self._ended_at > SECONDS_TO_END):
            raise KeyboardInterrupt
        if self.count == 2:
            self._ended_at = time.monotonic()
            self._end_at_once()


def _do_nothing() -> None:
    """Where nothing can be ended at once."""
