"""The reader of `mirrors` in property files: Mirror, and the models that hold its rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.errors import Problems, nearest_or_all, placed
from runner.project.acknowledged import read_acknowledged
from runner.project.inputs import Place, Source, Target
from runner.project.masks import check_masked
from runner.project.mirror import HISTORY, Acknowledged, Mirror, MirrorColumn, MirroredTable, MirrorQuery
from runner.project.nodes import DataTest, Model, Node, Project
from runner.project.properties import data_tests, optional_text
from runner.project.settings import (
    LAYOUTS,
    TABLE_NAME,
    TABLE_NAME_HINT,
    check_storage,
    folder_settings,
    layout_of,
    places_of_settings,
    read_former_names,
    read_settings,
    setting_name,
)
from runner.project.sql_analysis import expression
from runner.project.tables_seen import MOST_DIGITS
from runner.spec.values import one_of, read_table_name, texts
from runner.spec.words import Format
from runner.storage.data import Layout
from runner.yaml_text import Yaml, whole_number

MIRROR_KEYS = (
    *("name", "description", "of", "key", "columns", "left_out", "history", "where", "without_key", "on_truncate"),
    *("on_drift", "acknowledged", "renamed_from", "config", "tags", "data_tests", "tests"),
)
COLUMN_KEYS = ("type", "sent_as", "default", "description", "data_tests", "tests")
# Setting -> its values; the first is the default.
CHOICES = {
    "without_key": ("reject", "append", "whole_row", "count"),
    "on_truncate": ("delete", "keep"),
    "on_drift": ("warn", "add", "fail"),
    "history": ("false", "true"),
}
TYPES = (
    *("string", "boolean", "tinyint", "smallint", "int", "bigint", "decimal(10,2)", "float", "double"),
    *("date", "timestamp", "timestamp_ntz", "binary"),
)
DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
# Columns of the tables beside those of mirrors, and of steps on the way to a mirror.
STEPS = {
    *("_known_until", "_known_at", "_row_key", "_decision", "_newest", "_place", "_removes", "_is_gone", "_left_out"),
    "_is_left_out",
}
# The columns that mirrors have beside those of their table, with their descriptions.
OWN_COLUMNS = {
    "_changed_at": "when the database made the change that the row comes from",
    "_seq": "the place of that change in the order of changes",
    "_source": "the source that told it",
    "_unfit": "the values that do not fit their types, by column, as texts; null if all fit",
}
STATE_COLUMNS = {
    "_in_parts": "whether later changes told only some of the columns",
    "_untold": "columns that the table has and of which no change tells what the row has, with an empty name if the row"
    " was told without some of its columns; null if there are none",
}
HISTORY_COLUMNS = {
    "valid_from": "when the row became what it is here",
    "valid_to": "when it was changed or deleted; null if it still is what it is here",
    "is_current": "whether it still is",
    "op": "what made it: insert, update, or snapshot for a loaded row",
}


def mirror_names(entry: Yaml) -> Iterator[str]:
    """Yields the names of the models that a mirror makes, as far as they can be read."""
    name, history = entry.get("name"), entry.get("history")
    if name and isinstance(name.value, str):
        yield name.value
        if history and history.value == "true":
            yield f"{name.value}{HISTORY}"


def mirror_nodes(yaml: Yaml, project: Project, path: str) -> Iterator[Node]:
    """Returns the models of one mirror: its rows as they are and, if wanted, its history; raises all mistakes at
    once.
    """
    mirror = _read(yaml, {source.name: source for source in project.sources})
    check_masked(yaml, mirror)
    described = _described(yaml)
    config = {**folder_settings(project.model_config, Path(path).parent), **_own_config(yaml)}
    tags = frozenset(texts(yaml.get("tags")))
    for shows, ending in (("state", ""), ("history", HISTORY))[: 1 + _has_history(yaml)]:
        query = MirrorQuery(mirror, shows)
        columns = {**described, **_own_columns(shows)}
        query = replace(query, layout=_layout(yaml, project.target, config, columns, query))
        yield Node(
            query.model,
            "model",
            Model(query, "table", renamed_from=tuple(f"{name}{ending}" for name in mirror.renamed_from)),
            mirror.models,
            tags,
            path,
            optional_text(yaml.get("description")),
            {"materialized": "table", **{name: config[name] for name in LAYOUTS if name in config}},
            columns,
            where=yaml.where(),
        )


def _own_config(yaml: Yaml) -> dict[str, Any]:
    """Returns the settings that a mirror gives its tables; raises `setting-alone` for settings that only other models
    have.
    """
    config = yaml.get("config")
    own = read_settings(config)
    if config and (useless := [(name, value) for name, value in config.items() if setting_name(name) not in LAYOUTS]):
        name, value = useless[0]
        raise value.error("setting-alone", f'"{name}" has no meaning for a mirror', f"known: {', '.join(LAYOUTS)}")
    return own


def _layout(
    yaml: Yaml, target: Target, config: Mapping[str, Any], columns: Mapping[str, str], query: MirrorQuery
) -> Layout:
    """Returns the layout of the table that holds a mirror's rows."""
    at = yaml.get("config") or yaml
    with placed(at.where()):
        layout = layout_of(config, optional_text(yaml.get("description")), columns)
        check_storage(layout, target, places_of_settings(yaml.get("config")), at.where())
    has = [column.lower() for column in query.columns]
    for column in layout.columns:
        if column.lower() not in has:
            message = f'"{query.model}" has no column "{column}" to be kept by'
            raise at.error("column-unknown", message, nearest_or_all(column, query.columns))
    return layout


def generated_tests(node: Node, mirror: Mirror) -> Iterator[Node]:
    """Returns the data tests that each mirror has: `fits` tests that all values fit the types of their columns,
    `followed` that all statements could be followed and all rows were sent whole.
    """
    for kind in ("fits", "followed"):
        test, parents = DataTest(kind, node.name, {"mirror": mirror}), (node.name, *mirror.models)
        yield Node(f"{kind}_{node.name}", "test", test, parents, path=node.path, where=node.where)


def _read(yaml: Yaml, sources: Mapping[str, Source]) -> Mirror:
    problems = Problems()
    with problems.gathered():
        _check_name(yaml["name"])
    tables: tuple[MirroredTable, ...] = ()
    columns: tuple[MirrorColumn, ...] = ()
    chosen = {name: values[0] for name, values in CHOICES.items()}
    with problems.gathered():
        tables = _after_dumps(_needed(yaml, "of").as_list(), sources)
    with problems.gathered():
        columns = tuple(_columns(_needed(yaml, "columns"), taken_columns(_has_history(yaml))))
    for name in CHOICES:
        with problems.gathered():
            chosen[name] = _choice(yaml, name)
    acknowledged: tuple[Acknowledged, ...] = ()
    with problems.gathered():
        acknowledged = read_acknowledged(yaml.get("acknowledged"))
        _check_drift(yaml, chosen["on_drift"], acknowledged)
    with problems.gathered():
        if chosen["without_key"] == "count" and chosen["history"] == "true":
            message = "rows that are only counted have no history: nothing tells two of them apart"
            raise yaml["history"].error("mirror-setting", message, "history: false")
    where, former = "", tuple[str, ...]()
    with problems.gathered():
        former = read_former_names(yaml.get("renamed_from"))
    with problems.gathered():
        where = expression(yaml["where"], "where") if optional_text(yaml.get("where")) else ""
    key = texts(yaml.get("key"))
    with problems.gathered():
        _check_key(yaml, key, chosen["without_key"], [column.name for column in columns])
    problems.raise_if_any()
    if tables[-1].has_repairs and not key:
        raise yaml["of"].error(
            "mirror-setting", "a mirror without a key takes no repairs", f"leave out {tables[-1].source.name}"
        )
    columns = tuple(replace(column, is_key=column.name in key) for column in columns)
    settings: dict[str, Any] = {name: chosen[name] for name in ("without_key", "on_truncate", "on_drift")}
    settings |= {"left_out": texts(yaml.get("left_out")), "where": where, "acknowledged": acknowledged}
    return Mirror(yaml["name"].text(), tables, key, columns, renamed_from=former, **settings)


def _check_drift(yaml: Yaml, on_drift: str, acknowledged: Iterable[Acknowledged]) -> None:
    """Raises `mirror-setting` if drift is acknowledged of a mirror that gets each column of its table."""
    known = next((one.column for one in acknowledged if one.what == "drift"), "")
    if known and on_drift == "add":
        message = f'"{known}" is no drift: on_drift is add, and the mirror gets the column'
        raise yaml["acknowledged"].error("mirror-setting", message, f"left_out: [{known}]")


def _check_name(yaml: Yaml) -> None:
    if not TABLE_NAME.fullmatch(yaml.text()):
        raise yaml.error("mirror-name", f'"{yaml.text()}" cannot be the name of a mirror', TABLE_NAME_HINT)


def _needed(yaml: Yaml, key: str) -> Yaml:
    if not yaml.get(key) or not yaml[key].value:
        raise yaml.error("mirror-missing", f'the mirror "{yaml["name"].value}" needs "{key}"')
    return yaml[key]


def _table(yaml: Yaml, sources: Mapping[str, Source]) -> MirroredTable:
    yaml.only(("source", "table"))
    for key in ("source", "table"):
        if not yaml.get(key):
            raise yaml.error("mirror-missing", f'"of" needs "{key}"', "of: {source: shop, table: shop.orders}")
    source = yaml["source"].text()
    if source not in sources:
        hint = nearest_or_all(source, sources)
        raise yaml["source"].error("source-unknown", f'there is no source "{source}"', hint)
    return MirroredTable(sources[source], read_table_name(yaml["table"]))


# The kind of a place in a log -> what must be known of changes that are compared with it.
COMPARED = {
    "numbers": "numbers (seq)",
    "ids": "global transaction ids (meta.gtid)",
    "transactions": "transactions (tx_id)",
}


def _after_dumps(entries: Iterable[Yaml], sources: Mapping[str, Source]) -> tuple[MirroredTable, ...]:
    """Returns the tables; those that are no dumps themselves with the places at which dumps before them were taken.
    Raises `source-at` for a place that no change of a table can be compared with, and `mirror-setting` unless repairs
    stand last, behind one table of each source.
    """
    tables: list[MirroredTable] = []
    after: list[Place] = []
    for entry in entries:
        table = _table(entry, sources)
        own = () if table.source.messages.dump or table.has_repairs else tuple(after)
        if (tables and tables[-1].has_repairs) or (table.has_repairs and not _can_be_repaired(tables)):
            message = "repairs stand last, behind a table that they repair, which no other table of its source joins"
            raise entry.error("mirror-setting", message, "of: [{source: shop, table: orders}, {source: repairs, ...}]")
        for place in own:
            _check_compared(entry, place, table.source.format)
        tables.append(replace(table, after=own))
        after += [table.source.at] if table.source.at else []
    return tuple(tables)


def _can_be_repaired(tables: Iterable[MirroredTable]) -> bool:
    """Returns True if a mirror has the rows of one table: others that its `of` lists are the same in other sources."""
    sources = [table.source.name for table in tables]
    return 0 < len(sources) == len(set(sources))


def _check_compared(yaml: Yaml, place: Place, spec: Format) -> None:
    is_told = {"numbers": spec.seq, "ids": "gtid" in spec.meta, "transactions": "tx_id" in spec.columns}
    if not is_told.get(place.kind, True):
        message = f'changes of the format "{spec.name}" have no {COMPARED[place.kind]} to compare with "at" of the dump'
        raise yaml.error("source-at", message, "at: 2026-11-28T10:00:00Z, or another kind of place")
    if place.kind == "numbers" and "log" in spec.meta and not place.logs:
        message = f'changes of the format "{spec.name}" are numbered in the log of a server, which "at" does not name'
        raise yaml.error("source-at", message, 'at: {place: "binlog.000003:1234", log: "1"}, with the id of the server')


def _columns(yaml: Yaml, taken: Iterable[str]) -> Iterator[MirrorColumn]:
    """Returns the columns; raises `mirror-column` for a name that is taken, and for names that differ only in case."""
    seen: dict[str, str] = {}
    for name, entry in yaml.mapping().items():
        column = _column(name, entry)
        if name.lower() in taken:
            message = f'"{name}" cannot be a column beside "{name.lower()}", which the mirror has itself'
            raise entry.error("mirror-column", message, f"give it another name, with sent_as: [{name}]")
        for one in dict.fromkeys((name, *column.sent_as)):
            if (other := seen.setdefault(one.lower(), one)) != one:
                raise entry.error("mirror-column", f'"{one}" cannot be a column beside "{other}"')
        yield column


def _column(name: str, yaml: Yaml) -> MirrorColumn:
    if not isinstance(yaml.value, dict):
        return MirrorColumn(name, _type(yaml))
    yaml.only(COLUMN_KEYS)
    if not yaml.get("type"):
        raise yaml.error("mirror-missing", f'the column "{name}" needs "type"')
    default = yaml.get("default")
    value = default.text() if default and default.value is not None else None
    return MirrorColumn(name, _type(yaml["type"]), texts(yaml.get("sent_as")), default is not None, value)


def _type(yaml: Yaml) -> str:
    """Returns a type as macros compare it: in lower case, without blanks."""
    text = re.sub(r"\s", "", yaml.text().lower())
    parts = DECIMAL.fullmatch(text)
    digits, scale = (whole_number(part) or 0 for part in parts.groups()) if parts else (1, 0)
    if (not parts and text not in TYPES) or not 0 < digits <= MOST_DIGITS or scale > digits:
        hint = f"P is 1 to {MOST_DIGITS}, S at most P" if parts else nearest_or_all(text, TYPES)
        raise yaml.error("mirror-type", f'"{yaml.text()}" cannot be the type of a column of a mirror', hint)
    return text


def _has_history(yaml: Yaml) -> bool:
    return _choice(yaml, "history") == "true"


def _own_columns(shows: str) -> dict[str, str]:
    return {**(HISTORY_COLUMNS if shows == "history" else STATE_COLUMNS), **OWN_COLUMNS}


def taken_columns(with_history: bool) -> set[str]:
    """Returns the names that columns of a mirrored table cannot have in the mirror."""
    return {*_own_columns("state"), *(HISTORY_COLUMNS if with_history else ()), *STEPS}


def own_name(column: str, with_history: bool = False) -> str:
    """Returns the name that a column has in a mirror, which has columns of its own.

    >>> own_name("_seq"), own_name("op"), own_name("op", with_history=True)
    ('_seq_of_table', 'op', 'op_of_table')
    """
    return f"{column}_of_table" if column.lower() in taken_columns(with_history) else column


def _choice(yaml: Yaml, name: str) -> str:
    values = CHOICES[name]
    return one_of(yaml[name], values, "mirror-setting", f'"{name}"') if yaml.get(name) else values[0]


def _check_key(yaml: Yaml, key: tuple[str, ...], without_key: str, columns: Iterable[str]) -> None:
    if not key and not yaml.get("without_key"):
        hint = "without_key: count, whole_row or append, if the table has no key"
        raise yaml.error("mirror-key", f'the mirror "{yaml["name"].value}" needs "key"', hint)
    if key and without_key != "reject":
        hint = 'remove "key" if the table has none'
        raise yaml["key"].error("mirror-key", f'"key" has no meaning with "without_key: {without_key}"', hint)
    known = list(columns)
    for index, column in enumerate(key):
        if column not in known and known:
            message = f'the key "{column}" is not among the columns'
            raise yaml["key"].as_list()[index].error("mirror-key", message, nearest_or_all(column, known))


def _described(yaml: Yaml) -> dict[str, str]:
    """Returns the descriptions of columns, by column."""
    return {
        name: optional_text(entry.get("description")) if isinstance(entry.value, dict) else ""
        for name, entry in yaml["columns"].items()
    }


def mirror_tests(yaml: Yaml) -> Iterator[tuple[str | None, Yaml]]:
    """Returns each data test of a mirror, and its column if it is the test of a column."""
    for entry in data_tests(yaml):
        yield None, entry
    for name, column in yaml["columns"].items():
        for entry in data_tests(column):
            yield name, entry
