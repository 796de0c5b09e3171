"""Commands run from Python: when a command has ended, nothing is left of it but the files that it has written."""

from __future__ import annotations

import io
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from runner.cli import Invocation, execute

# A process has one JVM, so commands of several threads run one after the other.
ONE_AT_A_TIME = threading.RLock()


def invoked(arguments: Sequence[str]) -> Invocation:
    """Runs a command in this process. A session of Spark that is there is used, and left as it is; a session that has
    to be started is stopped, with its JVM. Raises KeyboardInterrupt when a signal has ended the command.
    """
    output = io.StringIO()
    with ONE_AT_A_TIME, _signals_kept(), _own_jvm_ended():
        outcome = execute([*arguments], output)
    if isinstance(outcome.exception, KeyboardInterrupt):
        raise outcome.exception
    return replace(outcome, output=output.getvalue())


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Makes Ctrl-C do after the block what it did before: a new session of Spark changes that, in the main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if is_main else None
    try:
        yield
    finally:
        if before:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _own_jvm_ended() -> Iterator[None]:
    """Ends the JVM that was started in the block: the next command may need another, with other packages."""
    had_jvm = _has_jvm()
    try:
        yield
    finally:
        if not had_jvm and _has_jvm():
            from runner.engine.start import end_jvm

            end_jvm()


def _has_jvm() -> bool:
    if "pyspark" not in sys.modules:
        return False
    from runner.engine.start import has_jvm

    return has_jvm()
