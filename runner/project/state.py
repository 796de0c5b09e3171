"""The state: the artifacts of an earlier run in its target folder, and the differences to the project now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.errors import RunnerError, Where, nearest_or_all
from runner.project.inputs import Catalog, Target
from runner.project.nodes import DECLARED, Node, Project

MANIFEST, RESULTS = "manifest.json", "run_results.json"
WRITES = {
    MANIFEST: "compile, run, test and build write it to the target folder",
    RESULTS: "run, test and build write it to the target folder",
}
# The members of a manifest that hold its nodes.
LISTS = ("nodes", "sources", "exposures", "unit_tests")
NEW = "new"
# Parts of a node that `state:modified.PART` names.
PARTS = ("body", "configs", "macros", "vars", "format")
STATES = ("modified", *(f"modified.{part}" for part in PARTS), "new", "old", "unmodified")
STATUSES = ("success", "error", "skipped", "pass", "warn", "fail")

Contents = Mapping[str, str]
"""Part of a node -> its checksum: `body`, and `configs.`, `macros.`, `vars.` or `format.` before a name."""


def given_state(folder: Path | None) -> Path:
    """Returns the folder of the run to compare with; raises `state-missing` if no folder is given."""
    if folder is None:
        hint = "--state FOLDER, or the environment variable RUNNER_STATE: the target folder of an earlier run"
        raise RunnerError("state-missing", "it is not said with what to compare", hint=hint)
    return folder


def read_artifact(folder: Path, name: str) -> dict[str, Any]:
    """Returns an artifact of an earlier run; raises `state-missing` without one, `state-unreadable` if it is
    damaged.
    """
    path = folder / name
    if not path.is_file():
        message = f'there is no "{name}" in "{folder}"'
        raise RunnerError("state-missing", message, hint=WRITES[name])
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise unreadable(path, "no JSON object")
    return found


def unreadable(path: Path, what: str) -> RunnerError:
    """Returns the error for an artifact that this runner cannot read."""
    hint = "write it again: runner compile, or runner run"
    return RunnerError("state-unreadable", f"cannot read the state: {what}", Where(path), hint)


def contents_in(folder: Path) -> dict[str, Contents]:
    """Returns the contents of all nodes in the manifest of a folder, by their names."""
    manifest = read_artifact(folder, MANIFEST)
    try:
        entries = [entry for one in LISTS for entry in manifest[one].values()]
        return {name_in(entry): dict(entry["config"]["contents"]) for entry in entries}
    except (KeyError, TypeError, AttributeError, ValueError):
        raise unreadable(folder / MANIFEST, "a node has no contents") from None


def target_in(folder: Path) -> Target:
    """Returns the target whose tables a run has written."""
    manifest = read_artifact(folder, MANIFEST)
    try:
        place = manifest["metadata"]["env"]
        catalog = Catalog(place["catalog"], place["schema"]) if "catalog" in place else None
        return Target(place["target"], place["path"], place["storage"], catalog=catalog)
    except (KeyError, TypeError):
        raise unreadable(folder / MANIFEST, "it does not say where the tables are") from None


def unique_id(project: Project, node: Node) -> str:
    """Returns the name of a node in artifacts."""
    return f"{node.resource_type}.{project.name}.{node.label}"


def name_in(entry: Mapping[str, Any]) -> str:
    """Returns the name of the node of an entry in a manifest.

    >>> of = {"package_name": "p"}
    >>> name_in({**of, "resource_type": "source", "unique_id": "source.p.crm.users"})
    'source.crm.users'
    >>> name_in({**of, "resource_type": "model", "unique_id": "model.p.orders"})
    'orders'
    """
    kind = entry["resource_type"]
    label = str(entry["unique_id"]).removeprefix(f"{kind}.{entry['package_name']}.")
    return f"{kind}.{label}" if kind in DECLARED else label


def statuses_in(folder: Path) -> dict[str, str]:
    """Returns the results of the last run of a folder: unique id of a node -> status."""
    results = read_artifact(folder, RESULTS)
    try:
        return {one["unique_id"]: one["status"] for one in results["results"]}
    except (KeyError, TypeError):
        raise unreadable(folder / RESULTS, "a result has no status") from None


def landed_in(folder: Path) -> dict[str, Mapping[str, Any]]:
    """Returns how far each source had landed after the last run of a folder, by source."""
    how = read_artifact(folder, RESULTS).get("args")
    landed = how.get("landed") if isinstance(how, dict) else None
    if not isinstance(landed, dict):
        raise unreadable(folder / RESULTS, "it does not say how far sources have landed")
    return landed


def differences(before: Contents | None, now: Contents) -> tuple[str, ...]:
    """Returns the parts of a node whose contents have changed.

    >>> differences({"body": "1", "vars.x": "1"}, {"body": "2", "macros.f": "1", "vars.x": "1"})
    ('body', 'macros.f')
    >>> differences(None, {"body": "1"})
    ('new',)
    """
    if before is None:
        return (NEW,)
    return tuple(sorted(part for part in {*before, *now} if before.get(part) != now.get(part)))


def is_in_state(state: str, changed: tuple[str, ...]) -> bool:
    """Returns True if a node of which these parts have changed is in a state.

    >>> is_in_state("modified", ("new",)), is_in_state("modified.vars", ("body",)), is_in_state("old", ("body",))
    (True, False, True)
    """
    match state.partition("."):
        case ("modified", "", ""):
            return bool(changed)
        case ("modified", ".", part):
            return any(one.partition(".")[0] == part for one in changed)
        case ("new", "", ""):
            return changed == (NEW,)
        case ("old", "", ""):
            return changed != (NEW,)
    return not changed


def check_state(state: str) -> None:
    """Raises `selector-state` for a word that is not a state of a node."""
    if state not in STATES:
        hint = nearest_or_all(state, STATES)
        raise RunnerError("selector-state", f'"state:{state}" is no state of a node', hint=hint)


def check_status(status: str) -> None:
    """Raises `selector-state` for a word that is not a result of a node."""
    if status not in STATUSES:
        hint = nearest_or_all(status, STATUSES)
        raise RunnerError("selector-state", f'"result:{status}" is no result of a node', hint=hint)
