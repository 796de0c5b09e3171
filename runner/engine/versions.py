"""Which version of the runner has written what is recorded of a table, and how a later one goes on with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from runner.files import Damaged

if TYPE_CHECKING:
    from runner.engine.checkpoint import Checkpoint

# What stands in each record: the number of the form that records and tables have, and the version that wrote them.
FORM, BY = "form", "by"
PACKAGE = "changelog-runner"


class Newer(Damaged):
    """A record has a form that only later versions know. The message names the record and both versions."""

    def __init__(self, path: str, by: str) -> None:
        Exception.__init__(
            self,
            f'"{path}" was written by version {by} of the runner, and this is version {program_version()}, which does '
            "not know its form: use that version or a later one",
        )


def program_version() -> str:
    """Returns the version of this program; `unknown` if it is not installed."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "unknown"


def signed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record with the form that this version gives it, and with this version."""
    return {**record, FORM: NEWEST_FORM, BY: program_version()}


def form_of(record: Mapping[str, Any], path: str) -> int:
    """Returns the form of a record that was read, 0 if it names none; raises Newer or Damaged."""
    form = record.get(FORM, 0)
    if not isinstance(form, int):
        raise Damaged(path, f'"{FORM}" is no number')
    if form > NEWEST_FORM:
        raise Newer(path, record.get(BY, "unknown"))
    return form


def with_messages_once_more(checkpoint: Checkpoint) -> None:
    """Gives a checkpoint the stream of messages that land once more, which has read nothing; and makes what has decided
    its rows the first entry of a list.
    """
    checkpoint.add_second_stream()
    checkpoint.list_fingerprints()


# The steps from each form to the next one. A step that is done twice, because a run has died after it, changes nothing
# more.
UPGRADES: tuple[Callable[[Checkpoint], None], ...] = (with_messages_once_more,)
NEWEST_FORM = len(UPGRADES)


def upgrade(checkpoint: Checkpoint) -> None:
    """Brings a checkpoint to the form that this version writes; raises Newer. Nobody else may write it meanwhile."""
    form, identity = checkpoint.form(), checkpoint.table()
    if checkpoint.is_there and form < NEWEST_FORM:
        for step in UPGRADES[form:]:
            step(checkpoint)
        if identity is not None:
            checkpoint.write_table(identity)
