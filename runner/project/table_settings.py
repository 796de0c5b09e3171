"""Settings of tables: partition_by, cluster_by, table_properties, persist_docs, incremental_strategy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from runner.errors import Problems, RunnerError, Where, nearest_or_all
from runner.project.contracts import is_enforced
from runner.project.inputs import Target
from runner.storage.data import Layout, Part
from runner.storage.known import STORAGES
from runner.yaml_text import whole_number

LAYOUTS = ("partition_by", "cluster_by", "table_properties", "persist_docs")
SETTINGS = (*LAYOUTS, "contract", "incremental_strategy")
STRATEGIES = ("append", "merge", "insert_overwrite")
DOCS = ("relation", "columns")
# Transform -> whether it takes a number before the column.
TRANSFORMS = {"years": False, "months": False, "days": False, "hours": False, "bucket": True, "truncate": True}
CALL = re.compile(r"(\w+)\(\s*(?:(\w+)\s*,)?\s*([^,()]+?)\s*\)")
# Properties that are set in another way, or are not for people to set.
RESERVED = {
    "comment": "persist_docs: {relation: true} makes the description the comment",
    "location": "the path of the target says where tables are",
    "provider": "storage of the target says what tables are",
    "owner": "the catalog sets it",
    "external": "the path of the target says where tables are",
    "is_managed_location": "the path of the target says where tables are",
}


def check(name: str, value: Any) -> None:
    """Raises RunnerError, without a place, if one of these settings cannot have this value. None counts as no
    setting.
    """
    if value is not None:
        CHECKS[name](name, value)


def layout_of(config: Mapping[str, Any], description: str, columns: Mapping[str, str]) -> Layout:
    """Returns the layout that settings ask for; `columns` are the descriptions of columns, by column."""
    docs = config.get("persist_docs") or {}
    return Layout(
        _parts("partition_by", config.get("partition_by")),
        _parts("cluster_by", config.get("cluster_by")),
        {str(key): _text(value) for key, value in (config.get("table_properties") or {}).items()},
        description if _is_true(docs.get("relation")) else None,
        columns if _is_true(docs.get("columns")) else None,
    )


def check_storage(layout: Layout, target: Target, place_of: Callable[[str], Where]) -> None:
    """Raises `setting-storage`, at the place of its setting, for each part of the layout that the storage lacks."""
    problems = Problems()
    for name, error in _not_kept(layout, target):
        problems.add(error.at(place_of(name)))
    problems.raise_if_any()


def _not_kept(layout: Layout, target: Target) -> Iterator[tuple[str, RunnerError]]:
    """Returns the settings that the storage does not have, each with its error, without a place."""
    storage_name = target.storage
    storage = STORAGES[storage_name]
    has_comments = layout.comment is not None or layout.comments is not None
    if has_comments and not storage.keeps_comments and not target.catalog:
        hint = "catalog: {schema: changelog}, under the target"
        yield "persist_docs", _lacks(storage_name, '"persist_docs" without a catalog', hint)
    asked = {
        "partition_by": layout.partition_by,
        "cluster_by": layout.cluster_by,
        "table_properties": layout.properties,
    }
    for name, hint in storage.lacks.items():
        if asked[name]:
            yield name, _lacks(storage_name, f'"{name}"', hint)
    keeps_together = (("partition_by", layout.partition_by), ("cluster_by", layout.cluster_by))
    for name, part in ((name, part) for name, parts in keeps_together if name not in storage.lacks for part in parts):
        if part.transform and part.transform not in storage.transforms:
            hint = "make a column of it, and name that" if not storage.transforms else ""
            yield name, _lacks(storage_name, f'"{part}", but columns alone', hint)
    most = storage.most_clusters
    if most and layout.cluster_by and layout.partition_by:
        yield "cluster_by", _lacks(storage_name, '"cluster_by" beside "partition_by"', "keep one of them")
    if most and len(layout.cluster_by) > most:
        hint = f"name the {most} that most queries use"
        yield "cluster_by", _lacks(storage_name, f'"cluster_by" of more than {most} columns', hint)


def check_strategy(config: Mapping[str, Any]) -> None:
    """Raises RunnerError `setting-strategy`, without a place, for a strategy that does not go with other settings."""
    strategy, key = config.get("incremental_strategy"), config.get("unique_key")
    if strategy == "merge" and not key:
        raise RunnerError("setting-strategy", '"merge" needs "unique_key"', hint="unique_key: id")
    if strategy in ("append", "insert_overwrite") and key:
        message = f'"unique_key" has no meaning with "{strategy}"'
        raise RunnerError("setting-strategy", message, hint="incremental_strategy: merge, or no unique_key")
    if strategy == "insert_overwrite" and not config.get("partition_by"):
        message = '"insert_overwrite" replaces partitions, and needs "partition_by"'
        raise RunnerError("setting-strategy", message, hint="partition_by: day")


def _lacks(storage: str, what: str, hint: str) -> RunnerError:
    return RunnerError("setting-storage", f"tables in {storage} do not have {what}", hint=hint)


def _parts(name: str, value: Any) -> tuple[Part, ...]:
    """Returns the parts that a setting names, in its order; raises RunnerError `setting-parts`, without a place."""
    given = value if isinstance(value, (list, tuple)) else () if value is None else (value,)
    parts = tuple(_part(name, one) for one in given)
    seen: set[str] = set()
    for part in map(str, parts):
        if part.lower() in seen:
            raise RunnerError("setting-parts", f'"{name}" names "{part}" twice', hint="remove one of them")
        seen.add(part.lower())
    return parts


def _part(name: str, text: Any) -> Part:
    """Returns a column or a transform of a column, from its text.

    >>> _part("partition_by", "bucket(16, id)"), str(_part("partition_by", "days( ts )"))
    (Part(column='id', transform='bucket', argument=16), 'days(ts)')
    """
    if not isinstance(text, str) or not text.strip():
        message = f'"{name}" is a column or a list of them'
        raise RunnerError("setting-parts", message, hint=f"{name}: [day, country]")
    call = CALL.fullmatch(text.strip())
    if not call:
        return Part(text.strip().strip("`"))
    transform, number, column = call[1], call[2], call[3].strip("`")
    if transform not in TRANSFORMS:
        hint = nearest_or_all(transform, TRANSFORMS)
        raise RunnerError("setting-parts", f'"{name}" knows no transform "{transform}"', hint=hint)
    argument = whole_number(number) if number else None
    if TRANSFORMS[transform] != bool(number) or (number and not argument):
        form = f"{transform}(16, id)" if TRANSFORMS[transform] else f"{transform}(at)"
        raise RunnerError("setting-parts", f'"{text}" in "{name}" is not like {form}', hint=f"{name}: ['{form}']")
    return Part(column, transform, argument)


def _check_parts(name: str, value: Any) -> None:
    _parts(name, value)


def _check_properties(name: str, value: Any) -> None:
    if not isinstance(value, dict) or not all(isinstance(one, (str, bool, int, float)) for one in value.values()):
        hint = f"{name}: {{delta.enableChangeDataFeed: true}}"
        raise RunnerError("setting-value", f'"{name}" is a mapping of names to values', hint=hint)
    for key in value:
        if str(key).lower() in RESERVED:
            raise RunnerError("setting-value", f'"{key}" is not set in "{name}"', hint=RESERVED[str(key).lower()])


def _check_docs(name: str, value: Any) -> None:
    hint = f"{name}: {{relation: true, columns: true}}"
    if not isinstance(value, dict) or not all(str(one).lower() in ("true", "false") for one in value.values()):
        raise RunnerError("setting-value", f'"{name}" says of relation and columns whether it is so', hint=hint)
    _check_words(name, value, DOCS)


def _check_strategy(name: str, value: Any) -> None:
    if value in ("delete+insert", "microbatch"):
        hint = "merge: new rows replace rows with the same unique_key"
        raise RunnerError("setting-value", f'"{name}" knows no "{value}"', hint=hint)
    _check_words(name, (value,), STRATEGIES)


def _check_words(name: str, words: Iterable[Any], known: Iterable[str]) -> None:
    for word in words:
        if word not in known:
            raise RunnerError("setting-value", f'"{name}" knows no "{word}"', hint=nearest_or_all(str(word), known))


def _check_contract(name: str, value: Any) -> None:
    is_enforced(value)


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


def _text(value: Any) -> str:
    """Returns a value of YAML as a text of SQL settings.

    >>> _text(True), _text("a"), _text(5)
    ('true', 'a', '5')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


CHECKS: Mapping[str, Callable[[str, Any], None]] = {
    "partition_by": _check_parts,
    "cluster_by": _check_parts,
    "table_properties": _check_properties,
    "persist_docs": _check_docs,
    "contract": _check_contract,
    "incremental_strategy": _check_strategy,
}
