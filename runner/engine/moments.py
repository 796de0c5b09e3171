"""Whether a changelog and its checkpoint belong together and are of one moment: a backup of only one of them, restored,
would lose messages or land them twice.
"""

from __future__ import annotations

from runner.engine.checkpoint import Checkpoint
from runner.engine.errors import QueryFailed
from runner.storage.storage import Storage

REMEDY = "restore both as they were at one moment, or --full-refresh reads everything again"


def check_moment(name: str, storage: Storage, checkpoint: Checkpoint) -> None:
    """Raises QueryFailed if the stream of a changelog must not go on."""
    wrong = _why_apart(name, storage, checkpoint) if checkpoint.is_there else _why_alone(name, storage)
    if wrong:
        raise QueryFailed(f"{wrong}, so it is not known what was read: {REMEDY}")


def _why_alone(name: str, storage: Storage) -> str | None:
    return f'"{name}" has rows and no checkpoint' if storage.has_rows(name) else None


def _why_apart(name: str, storage: Storage, checkpoint: Checkpoint) -> str | None:
    if not storage.has_changelog(name):
        return f'the table "{name}" is gone and its checkpoint is there' if checkpoint.newest_commit >= 0 else None
    if checkpoint.table() != (storage.identity(name) or ""):
        return f'the checkpoint of "{name}" is that of another table of this name'
    newest, landed = storage.newest_batch(name), checkpoint.newest_landed()
    if newest is not None and newest > checkpoint.newest_plan:
        begun = checkpoint.newest_plan
        return (
            f'the checkpoint of "{name}" is older than its table, which has batch {newest} where it has begun {begun}'
        )
    # Rows that were removed on purpose are not missing.
    if checkpoint.kept_since() is None and landed > (-1 if newest is None else newest):
        return f'the table "{name}" is older than its checkpoint: it lacks batch {landed}, which has landed'
    return None
