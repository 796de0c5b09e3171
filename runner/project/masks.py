"""What becomes of columns whose values nobody may see, as a source declares it for its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from runner.errors import Problems, RunnerWarning, did_you_mean
from runner.project.inputs import FUNCTION, HASHED, OTHER_COLUMNS, SHOWN, Source, TableSettings
from runner.project.mirror import Mirror, MirrorColumn
from runner.project.tables_seen import TablesSeen
from runner.spec.values import one_of
from runner.yaml_text import Yaml, whole_number

# Masks that are one word. Any other word is a SQL function of the project.
WORDS = ("drop", "null", HASHED, SHOWN)
# Masks that keep a part of a value, each with what it needs.
PARTS = ("last", "first", "keep")
KEPT = ("domain",)
UNKNOWN = (HASHED, SHOWN)


def read_masks(yaml: Yaml | None, key: Iterable[str], has_masked_key: bool) -> dict[str, str]:
    """Returns the mask of each column, by the name of the column in lower case, as SQL knows it. Raises all mistakes at
    once: `mask-unknown`, and `mask-key` for a column of the key.
    """
    problems, out, in_key = Problems(), dict[str, str](), {column.lower() for column in key}
    for column, mask in yaml.mapping().items() if yaml else ():
        with problems.gathered():
            out[column.lower()] = _mask(mask)
            if column.lower() in in_key:
                check_key(mask, column, out[column.lower()], has_masked_key)
    problems.raise_if_any()
    return out


def check_key(yaml: Yaml, column: str, mask: str, has_masked_key: bool) -> None:
    """Raises `mask-key` for a column of a key that is masked so that different keys become the same, or that is masked
    without a word that it is meant.
    """
    if mask not in (SHOWN, HASHED):
        message = f'"{column}" is of the key, and masked with {mask}: different rows would have one key'
        raise yaml.error("mask-key", message, f"{column}: hmac, and masked_key: true")
    if mask == HASHED and not has_masked_key:
        message = f'"{column}" is of the key, and masked: nobody finds a row by the key of its table'
        raise yaml.error("mask-key", message, "masked_key: true beside mask, if that is meant")


def _mask(yaml: Yaml) -> str:
    hint = f"known: {', '.join(WORDS)}, {{last: 4}}, {{first: 2}}, {{keep: domain}}, or a SQL function of the project"
    if yaml.value is None:
        return "null"
    if not isinstance(yaml.value, dict):
        word = yaml.text()
        if not word.isidentifier():
            raise yaml.error("mask-unknown", f'unknown mask "{word}"', hint)
        return word if word in WORDS else f"{FUNCTION} {word}"
    yaml.only(PARTS)
    if len(yaml.value) != 1:
        raise yaml.error("mask-unknown", "a mask keeps one part of a value", hint)
    ((part, value),) = yaml.items()
    if part == "keep":
        return f"keep {one_of(value, KEPT, 'mask-unknown', 'keep')}"
    number = whole_number(value.text())
    if not number:
        raise value.error("mask-unknown", f'"{part}" needs a number of characters from 1', hint)
    return f"{part} {number}"


def with_unknown(tables: Iterable[TableSettings], yaml: Yaml | None) -> tuple[TableSettings, ...]:
    """Returns tables of a source with the mask of columns that neither a mask nor anything else names, in those that
    have masks.
    """
    unknown = one_of(yaml, UNKNOWN, "mask-unknown", "mask_unknown_columns") if yaml else SHOWN
    return tuple(_with_others(table, unknown) if table.masks else table for table in tables)


def _with_others(table: TableSettings, unknown: str) -> TableSettings:
    named = {column.lower(): SHOWN for column in (*table.key, *table.columns)}
    return replace(table, masks={**named, **table.masks, OTHER_COLUMNS: unknown})


def mask_of(masks: Mapping[str, str], column: str) -> str:
    """Returns the mask of a column.

    >>> mask_of({"phone": "hmac", "*": "none"}, "Phone")
    'hmac'
    """
    return masks.get(column.lower(), masks.get(OTHER_COLUMNS, SHOWN))


def masks_of(source: Source, table: Sequence[str]) -> TableSettings | None:
    """Returns the masks of a table of a source, as SQL finds them: by the last parts of its name, whatever their case.
    A table of which some parts are not named has the masks of each table that it may be.
    """
    name = [part.lower() for part in table]
    for settings in source.masked:
        own = [part.lower() for part in settings.name]
        shared = min(len(own), len(name))
        if own[-shared:] == name[-shared:]:
            return settings
    return None


def mask_in(mirror: Mirror, column: str) -> str:
    """Returns the mask of a column of a mirror, which is the same in all sources of the mirror."""
    found = next((one for one in mirror.columns if one.name == column), None)
    logged = mirror.logged[0]
    return _mask_of_column(masks_of(logged.source, logged.name), found) if found else SHOWN


def check_masked(yaml: Yaml, mirror: Mirror) -> None:
    """Raises `mask-key` for a mirror whose key is masked without a word about it, `mask-type` for columns whose types
    do not fit what stands in place of values, `mask-differs` for one of whose sources only some mask a column.
    """
    found = [(table, masks_of(table.source, table.name)) for table in mirror.logged]
    problems = Problems()
    for column in mirror.columns if any(settings for _, settings in found) else ():
        at = yaml["columns"][column.name] if yaml["columns"].get(column.name) else yaml
        with problems.gathered():
            masks = {table.source.name: _mask_of_column(settings, column) for table, settings in found}
            if len(set(masks.values())) > 1:
                told = ", ".join(f"{mask} in {source}" for source, mask in masks.items())
                hint = "give the table the same mask in all sources of the mirror"
                raise at.error("mask-differs", f'"{column.name}" is masked in several ways: {told}', hint)
            _check_column(at, column, next(iter(masks.values())), all(one and one.has_masked_key for _, one in found))
    problems.raise_if_any()


def _mask_of_column(settings: TableSettings | None, column: MirrorColumn) -> str:
    """Returns the mask of the column of a table that a mirror reads, under whichever name it is sent."""
    masks = settings.masks if settings else {}
    sent = [mask_of(masks, name) for name in (*column.sent_as, column.name) if not name.startswith("meta.")]
    return next((mask for mask in sent if mask != SHOWN), SHOWN)


def _check_column(yaml: Yaml, column: MirrorColumn, mask: str, has_masked_key: bool) -> None:
    name = column.name
    if column.is_key:
        check_key(yaml, name, mask, has_masked_key)
    if mask == "drop":
        message = f'"{name}" is masked with drop: the mirror would never have a value of it'
        raise yaml.error("mask-type", message, "leave the column out of the mirror")
    if mask not in (SHOWN, "null") and not mask.startswith(FUNCTION) and column.type != "string":
        message = f'"{name}" is masked with {mask}: what stands in its place is no {column.type}'
        raise yaml.error("mask-type", message, f"{name}: string")


def unmatched(source: Source, seen: TablesSeen) -> Iterator[RunnerWarning]:
    """Yields warnings about masks of columns that no row of their tables has, and of tables whose names are nearly
    those of others: what is mistyped hides nothing.
    """
    for settings in source.masked:
        tables = [one for one in seen.tables if masks_of(source, one.names) is settings]
        at = settings.origin["mask"]
        names = [".".join(one.names[-len(settings.name) :]) for one in seen.tables]
        own = ".".join(settings.name)
        if not tables and (near := did_you_mean(own, names)):
            what = f'no table "{own}" has landed in "{source.name}", and its masks hide nothing'
            yield RunnerWarning("mask-unmatched", what, at.where(), near)
        there = {column.name for table in tables for column in table.columns}
        for column in at.value if tables else ():
            mask, known = settings.masks[column.lower()], {name.lower() for name in there}
            if column.lower() in known or mask == SHOWN:
                continue
            shown = [name for name in there if mask_of(settings.masks, name) == SHOWN]
            near = did_you_mean(column, shown)
            # A column that is dropped is never there.
            if mask != "drop" or near:
                what = f'no row of "{own}" has a column "{column}", and its mask hides nothing'
                yield RunnerWarning("mask-unmatched", what, at[column].where(), near)
