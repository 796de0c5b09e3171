"""The runner: `invoke` runs a command from Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.cli import Invocation

__all__ = ["invoke"]


def invoke(arguments: Sequence[str]) -> Invocation:
    """Runs a command in this process and returns how it went. Raises KeyboardInterrupt when a signal has ended it."""
    # Imported only here: code that does not use it, such as the command line, starts without it.
    from runner.cli import invoked

    return invoked(arguments)
