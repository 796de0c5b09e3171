"""Whether a changelog and its checkpoint belong together and are of one moment: a backup of only one of them, restored,
would lose messages or land them twice.
"""

from __future__ import annotations

from runner.engine.checkpoint import Checkpoint
from runner.engine.errors import QueryFailed
from runner.engine.tables import Tables
from runner.errors import full_refresh
from runner.storage.storage import Storage


def check_moment(name: str, tables: Tables) -> None:
    """Raises QueryFailed if the stream of a changelog must not go on."""
    storage, checkpoint = tables.storage, tables.checkpoint(name)
    wrong: str | None = None
    if not checkpoint.is_there:
        missing = f'"{checkpoint.folder}/metadata" is missing'
        wrong = f'"{name}" has rows and no checkpoint ({missing})' if storage.has_rows(name) else None
    elif tables.is_gone(name):
        wrong = f'the table "{tables.target.at(name)}" is gone, or its list of files is, and its checkpoint is there'
    elif storage.has_changelog(name):
        wrong = _why_apart(name, storage, checkpoint)
    if wrong:
        raise QueryFailed(f"{wrong}, so it is not known what was read: {_remedy(name)}")


def _remedy(name: str) -> str:
    return f"restore both as they were at one moment, or {full_refresh(name)} reads everything again"


def _why_apart(name: str, storage: Storage, checkpoint: Checkpoint) -> str | None:
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
