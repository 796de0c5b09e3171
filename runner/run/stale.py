"""Rows that an earlier spec has made, which the spec as it is now may make otherwise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from runner.counts import enumeration
from runner.engine.checkpoint import Checkpoint
from runner.engine.recorded import Fingerprint
from runner.errors import RunnerError, full_refresh
from runner.project.inputs import Source
from runner.project.mask_secret import VARIABLE, MaskSecret

if TYPE_CHECKING:
    from runner.run.run import Run

# The entries of a source that decide its rows, beside its format. If only the generation changes, no row needs to land
# again.
GENERATION = "generation"
MASK_SECRET = "mask_secret"
SOURCE_PARTS = (GENERATION, "zone", "tables", "mask_unknown_columns", "loads", "schema", "registry")
# Those that decide what messages are, which no SQL shows.
DUMP_PARTS = {"dump", "jdbc", "at"}


def fingerprint_of(source: Source, meaning: str, secret: MaskSecret | None) -> Fingerprint:
    """Returns what decides the rows of a source now; `meaning` is that of its compiled SQL."""
    parts = {part: json.dumps(source.written[part]) for part in SOURCE_PARTS if part in source.written}
    masked = {MASK_SECRET: secret.name} if secret and source.masked else {}
    return Fingerprint.of(
        source.format.name, meaning, source.messages.reach, {**parts, **masked, **_dump_parts(source)}
    )


def made_by_now(checkpoint: Checkpoint, now: Fingerprint) -> list[Fingerprint]:
    """Returns what has decided the rows that landed, and at the end what decides those that land from now on."""
    *earlier, then = checkpoint.fingerprints() or [now]
    if not checkpoint.is_there:
        return [now]
    if makes_other_rows(then, now):
        return [*earlier, then, replace(now, since=checkpoint.newest_plan + 1)]
    return [*earlier, replace(now, since=then.since)]


def stale_batches(made_by: Sequence[Fingerprint]) -> list[tuple[int, int]]:
    """Returns the batches, from one up to before another, whose rows would be made otherwise by the last of these.

    >>> one, other = Fingerprint("f", "1"), Fingerprint("f", "2")
    >>> stale_batches([one, replace(other, since=3), replace(one, since=5)])
    [(3, 5)]
    """
    now = made_by[-1]
    return [(one.since, after.since) for one, after in pairwise(made_by) if makes_other_rows(one, now)]


def makes_other_rows(then: Fingerprint, now: Fingerprint) -> bool:
    """Returns True if what decides rows now may make other rows than what decided them then."""
    return then.sha256 != now.sha256 or not {*DUMP_PARTS, MASK_SECRET}.isdisjoint(then.changed_parts(now))


def told_stale(source: Source, then: Fingerprint, now: Fingerprint) -> str:
    """Returns a note on rows that an earlier format or source has made, with what makes them anew."""
    parts = [part for part in then.changed_parts(now) if part != GENERATION]
    what = (
        f"source {source.name}: {enumeration(parts)} changed"
        if parts
        else f'the compiled SQL of the format "{now.format}" has changed'
    )
    clear = " (values that are masked now may still be there in clear)" if source.masked else ""
    if source.raw.are_all:
        how = f"runner reprocess {source.name} --stale --dry-run shows what would differ"
    else:
        how = f"{full_refresh(source.model)} lands all rows again"
    return f"{what} since rows landed{clear}: {how}"


def check_secret(source: Source, then: Fingerprint, secret: MaskSecret | None) -> None:
    """Raises `mask-secret` if rows were masked with a secret that is neither the one of now nor the one before it."""
    known = {secret.name, secret.name_before} if secret else set()
    if then.parts.get(MASK_SECRET) not in (None, *known):
        what = f'"{source.name}" was masked with another secret: equal values would differ, and nothing could be opened'
        hint = f"give the secret that was used, as {VARIABLE}, or as {VARIABLE}_BEFORE beside the new one"
        raise RunnerError("mask-secret", what, source.where, hint)


def check_opened(run: Run, source: Source, secret: MaskSecret | None) -> None:
    """Raises `mask-secret` without a secret, and if rows of a source were ever masked with another one."""
    run.check_masks()
    for then in run.tables.checkpoint(source.model).fingerprints():
        check_secret(source, then, secret)


def _dump_parts(source: Source) -> dict[str, str]:
    """Returns the parts of a source that decide what rows of a dump become, without a password."""
    if not (dump := source.messages.dump):
        return {}
    query = {key: value for key, value in source.written.get("jdbc", {}).items() if key != "password"}
    return {"dump": json.dumps(source.written.get("dump")), "jdbc": json.dumps(query), "at": dump.taken_at}
