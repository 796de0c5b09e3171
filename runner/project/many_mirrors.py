"""The mirrors of a project: those that files have, and those of the tables that rules match."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

from runner.errors import Problems, RunnerWarning, Where
from runner.project.acknowledged import read_acknowledged
from runner.project.inputs import SHOWN, Source
from runner.project.masks import mask_of, masks_of
from runner.project.mirror import HISTORY, Mirror
from runner.project.mirror_rules import LIKE_KEYS, PLACE, PLACES, MirrorRule, is_rule, matches, read_rule
from runner.project.mirrors import MIRROR_KEYS, mirror_names, own_name
from runner.project.nodes import Node
from runner.project.properties import entries
from runner.project.tables_seen import ColumnSeen, TableSeen, TablesSeen, column_type, plain_name, wider_type
from runner.spec.values import texts
from runner.spec.words import Types
from runner.yaml_text import Steps, Yaml

# The column of a mirror of several tables that says which table a row is in.
TABLE_COLUMN, TABLE_SENT_AS = "_table", "meta.table"


@dataclass(frozen=True)
class Mirrors:
    """The mirrors of a project, each an entry under `mirrors` as a person writes it: those that stand in files, and
    those that `rules` stand for, whose names are `by_rule`. `warnings` are about tables that have no mirror. `awaited`
    are the names that mirrors may get of sources of which nothing has landed yet.
    """

    entries: tuple[Yaml, ...]
    rules: tuple[MirrorRule, ...]
    by_rule: frozenset[str]
    warnings: tuple[RunnerWarning, ...]
    awaited: tuple[re.Pattern[str], ...] = ()

    def makes(self, node: Node) -> bool:
        """Returns True if a node is a mirror that a rule makes, or one of the tests that each mirror has."""
        test = node.data_test
        return (test.model if test and "mirror" in test.arguments else node.name) in self.by_rule


def read_mirrors(
    files: Iterable[Yaml],
    sources: Iterable[Source],
    seen: Callable[[Source], TablesSeen],
    names: Mapping[str, Where],
    problems: Problems,
) -> Mirrors:
    """Returns the mirrors of property files. `seen` tells the tables of a source, `names` are those of all other
    models. Mistakes are added to `problems`.
    """
    files, by_name = list(files), {source.name: source for source in sources}
    written = [entry for file in files for entry in entries(file, "mirrors", MIRROR_KEYS, problems, is_rule)]
    rules, made, warnings = list[MirrorRule](), list[Yaml](), list[RunnerWarning]()
    for file in files:
        for entry in file["mirrors"].elements() if isinstance(file.value.get("mirrors"), list) else ():
            with problems.gathered():
                rules += [read_rule(entry, by_name)] if is_rule(entry) else []
    taken = {name.lower(): where for name, where in names.items()}
    taken |= {name.lower(): entry.where() for entry in written for name in mirror_names(entry)}
    awaited = list[re.Pattern[str]]()
    for rule in rules:
        tables = seen(rule.source)
        found = expanded(rule, tables, taken)
        made += found.entries
        warnings += found.warnings
        awaited += [] if tables.tables else [_names_of(rule)]
    by_rule = frozenset(name for entry in made for name in mirror_names(entry))
    return Mirrors((*written, *made), tuple(rules), by_rule, tuple(warnings), tuple(awaited))


def _names_of(rule: MirrorRule) -> re.Pattern[str]:
    """Returns the pattern of the names that a rule gives to mirrors and histories."""
    names = [rule.into or PLACE.sub("*", rule.name), *(like["name"].value for _, like in rule.like if like.get("name"))]
    texts = (r"\w*".join(map(re.escape, str(name).split("*"))) for name in names)
    return re.compile(f"(?:{'|'.join(texts)})(?:{HISTORY})?")


def lacks_mirror(table: TableSeen, mirrors: Iterable[Mirror], rules: Iterable[MirrorRule]) -> bool:
    """Returns True if a table has no mirror, and no rule is for it or leaves it out."""
    own = (one.name for mirror in mirrors for one in mirror.tables if one.source.name == table.source)
    patterns = (one for rule in rules if rule.source.name == table.source for one in (*rule.tables, *rule.left))
    return not any(map(table.ends_with, own)) and not any(matches(pattern, table) for pattern in patterns)


# --- the mirrors of a rule


@dataclass(frozen=True)
class Expanded:
    """The mirrors that a rule stands for, each an entry as a person would write it, with the places of the rule; and
    warnings about tables that have none.
    """

    entries: tuple[Yaml, ...]
    warnings: tuple[RunnerWarning, ...]


def expanded(rule: MirrorRule, seen: TablesSeen, taken: dict[str, Where]) -> Expanded:
    """Returns the mirrors of a rule. `taken` are the names of models, in lower case, each with the place where it is
    written; the names of these mirrors are added.
    """
    tables = [table for table in seen.tables if rule.matches(table)]
    entries, warnings = list[Yaml](), list[RunnerWarning]()
    if not tables and seen.tables:
        known = ", ".join(table.path for table in seen.tables[:5])
        warnings.append(
            RunnerWarning("mirror-rule-empty", "the patterns match no table of the source", rule.yaml.where(), known)
        )
    if rule.into:
        taken[rule.into.lower()] = rule.yaml.where()
        return _merged(rule, tables, warnings)
    for table in tables:
        if not rule.makes_mirror(table):
            how = f"write it under tables to make one: {table.path}"
            warnings.append(
                RunnerWarning("mirror-rule-new", f'the new table "{table.path}" has no mirror', rule.yaml.where(), how)
            )
            continue
        settings = _settings(rule, table)
        entry = _entry(rule, table, _name(rule, table, settings), settings)
        name, *_ = names = list(mirror_names(entry))
        if owners := [taken[one.lower()] for one in names if one.lower() in taken]:
            what = f'"{table.path}" has no mirror: its name would be "{name}", which is taken at {owners[0]}'
            hint = 'name: "{db}_{table}", or a name for this table under tables_like'
            warnings.append(RunnerWarning("mirror-rule-name", what, rule.yaml.where(), hint))
            continue
        taken.update((one.lower(), rule.yaml.where()) for one in names)
        entries.append(entry)
        warnings += _warnings(rule, table, name, _known_drift(settings))
    return Expanded(tuple(entries), tuple(warnings))


def _known_drift(settings: Settings) -> set[str]:
    """Returns the columns whose drift a person knows of today, in lower case."""
    today = datetime.now(timezone.utc).date()
    known = read_acknowledged(settings.get("acknowledged"))
    return {one.column.lower() for one in known if one.what == "drift" and not one.has_ended(today)}


def _warnings(rule: MirrorRule, table: TableSeen, name: str, known: set[str]) -> Iterator[RunnerWarning]:
    """Yields warnings about changes of a table of which the rule says `warn`, and which its mirror does not follow,
    but for columns of which a person knows.
    """
    for column in (one for one in table.columns if one.name.lower() not in known):
        for kind, what in changes(column, rule.source.format.types):
            if rule.schema[kind] == "warn":
                text = f'the mirror "{name}" does not follow a change of "{table.path}": "{column.name}" {what}'
                hint = f"schema: {{{kind}: follow}}, or keep, which does not warn"
                yield RunnerWarning("mirror-rule-column", text, rule.yaml.where(), hint)


def changes(column: ColumnSeen, types: Types | None) -> Iterator[tuple[str, str]]:
    """Yields how a column of a table has changed since its first change: the kinds of `schema`, each in words."""
    if column.is_renamed:
        yield "rename", "has another name"
    elif column.is_gone:
        yield "drop", "is gone"
    elif column.is_added:
        yield "add", "is new"
    told = [column_type(_as(column, one), types) for one in (*column.earlier, column.type)]
    for before, now in pairwise(told):
        if before != now:
            yield ("narrow" if wider_type(before, now) == before else "widen"), f"is {now}, and was {before}"


def _merged(rule: MirrorRule, tables: list[TableSeen], warnings: list[RunnerWarning]) -> Expanded:
    """Returns the one mirror of several tables with the key of the first one, whose rows also tell their table."""
    if not tables:
        return Expanded((), tuple(warnings))
    settings, first = _settings(rule, tables[0]), tables[0]
    key = texts(settings["key"]) if "key" in settings else first.key or ((first.row_id,) if first.row_id else ())
    merged = list[TableSeen]()
    for table in tables:
        if "key" in settings or {one.lower() for one in table.key} == {one.lower() for one in first.key}:
            merged.append(table)
            continue
        keys = f"its key is ({', '.join(table.key)}), and that of {first.path} is ({', '.join(first.key)})"
        what = f'"{table.path}" is not in the mirror "{rule.into}": {keys}'
        warnings.append(
            RunnerWarning("mirror-rule-keys", what, rule.yaml.where(), "write the key of all tables under key")
        )
    columns: dict[str, Any] = {TABLE_COLUMN: {"type": "string", "sent_as": [TABLE_SENT_AS]}}
    left: dict[str, None] = {}
    for table in merged:
        own, without = _columns(rule, table, settings)
        left.update(dict.fromkeys(without))
        same = {name.lower(): name for name in columns}
        for of_table, value in own.items():
            name = same.get(of_table.lower(), of_table)
            columns[name] = _both(columns[name], value) if name in columns else value
    entry = _entry(rule, first, rule.into, settings)
    of = [{"source": rule.source.name, "table": table.path} for table in merged]
    paths = f"{len(merged)} tables of source {rule.source.name}: {merged[0].path} to {merged[-1].path}"
    value = {**entry.value, "description": paths, "of": of, "columns": columns, "left_out": list(left)}
    if "key" in value:
        value["key"] = [TABLE_COLUMN, *key]
    return Expanded((Yaml(value, entry.places),), tuple(warnings))


def _both(one: Any, other: Any) -> Any:
    """Returns the column of a mirror that takes the values of two columns of the same name."""
    if isinstance(one, dict) or isinstance(other, dict):
        return one if isinstance(one, dict) else other
    return wider_type(one, other)


Settings = Mapping[str, Yaml]


def _settings(rule: MirrorRule, table: TableSeen) -> dict[str, Yaml]:
    """Returns the settings of a table's mirror: those of the rule, then those of each pattern that matches the
    table.
    """
    settings = {key: value for key, value in rule.yaml.items() if key in LIKE_KEYS and key != "name"}
    for pattern, like in rule.like:
        if matches(pattern, table):
            columns = [one["columns"] for one in (settings, like.value) if "columns" in one]
            settings |= dict(like.items())
            if len(columns) == 2:
                settings["columns"] = _laid_over(settings["columns"], columns[0])
    return settings


def _laid_over(columns: Yaml, others: Yaml) -> Yaml:
    return Yaml({**others.value, **columns.value}, columns.places, columns.steps)


def _name(rule: MirrorRule, table: TableSeen, settings: Settings) -> str:
    return settings["name"].text() if "name" in settings else name_by(rule.name, table)


def name_by(template: str, table: TableSeen) -> str:
    """Returns the name of a table's mirror by the template of a rule."""
    *others, own = table.names
    parts = dict.fromkeys(PLACES, "") | {"source": table.source, "table": own}
    # One name before the table is its database; of two, the second is its schema; of three, the first is its tenant.
    kinds = {0: (), 1: ("db",), 2: ("db", "schema"), 3: ("tenant", "db", "schema")}[len(others)]
    parts.update(zip(kinds, others))
    return plain_name(PLACE.sub(lambda found: parts[found[1]], template))


def _entry(rule: MirrorRule, table: TableSeen, name: str, settings: Settings) -> Yaml:
    """Returns a mirror of a table as a person would write it."""
    columns, left = _columns(rule, table, settings)
    own = {key: value.value for key, value in settings.items()}
    key = [own_name(column, True) for column in table.key] or ([table.row_id] if table.row_id else [])
    value: dict[str, Any] = {
        "description": f"{table.path} of source {rule.source.name}",
        **({"key": key} if key else {} if "without_key" in own else {"without_key": "reject"}),
        **({"on_drift": "fail"} if rule.schema["add"] == "fail" else {}),
        **own,
        "name": name,
        "of": {"source": rule.source.name, "table": table.path},
        "columns": columns,
        "left_out": [*texts(settings.get("left_out")), *left],
    }
    if "renamed_from" in own:
        value["renamed_from"] = [name_by(name, table) for name in texts(settings["renamed_from"])]
    if "without_key" in own and "key" not in own:
        value.pop("key", None)
    if rule.repairs and value.get("key"):
        value["of"] = [value["of"], {**value["of"], "source": rule.repairs.name}]
    places: dict[Steps, Where] = {(key,): one.where() for key, one in settings.items() if key in value}
    known = settings["acknowledged"].as_list() if "acknowledged" in settings else ()
    places |= {("acknowledged", number): one.where() for number, one in enumerate(known)}
    written = settings["columns"].items() if "columns" in settings else ()
    places |= {("columns", column): one.where() for column, one in written}
    return Yaml(value, {(): rule.yaml.where(), **places})


def _columns(rule: MirrorRule, table: TableSeen, settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """Returns the columns of a mirror, and those of its table that the mirror is not to have."""
    written = settings["columns"].value if "columns" in settings else {}
    given = {name.lower() for name in written}
    left = {name.lower() for name in texts(settings.get("left_out"))}
    columns: dict[str, Any] = {table.row_id: {"type": "string", "sent_as": ["meta.rowid"]}} if table.row_id else {}
    without, seen = list[str](), set[str]()
    settings_of_masks = masks_of(rule.source, table.names)
    masks = settings_of_masks.masks if settings_of_masks else {}
    for column in table.columns:
        name, lower = own_name(column.name, with_history=True), column.name.lower()
        if lower in left or lower in seen:
            continue
        seen.add(lower)
        is_needed = {lower, name.lower()} & given or column.name in table.key
        if not is_needed and _is_kept_out(rule, column):
            if column.is_gone or rule.schema["add"] == "keep":
                without.append(column.name)
            continue
        mask = mask_of(masks, column.name)
        if mask == "drop":
            without.append(column.name)
            continue
        kind = _type(rule, column, rule.source.format.types) if mask in (SHOWN, "null") else "string"
        columns[name] = kind if name == column.name else {"type": kind, "sent_as": [column.name]}
    same = {name.lower(): name for name in columns}
    for name, value in written.items():
        columns[same.get(name.lower(), name)] = value
    return columns, without


def _is_kept_out(rule: MirrorRule, column: ColumnSeen) -> bool:
    """Returns True if a mirror is not to have a column of its table."""
    is_followed = rule.schema["rename" if column.is_renamed else "drop"] == "follow"
    return (column.is_added and rule.schema["add"] != "follow") or (column.is_gone and is_followed)


def _type(rule: MirrorRule, column: ColumnSeen, types: Types | None) -> str:
    """Returns the type of a column after all types that it had: a wider or a narrower one is taken if the rule follows
    such a change.
    """
    told = [*column.earlier, column.type] if column.type else [None]
    found, *later = (column_type(_as(column, one), types) for one in told)
    for kind in later:
        wider = wider_type(found, kind)
        change = "narrow" if wider == found else "widen"
        if kind != found and rule.schema[change] == "follow":
            found = kind if change == "narrow" else wider
    return found


def _as(column: ColumnSeen, kind: str | None) -> ColumnSeen:
    return column if kind == column.type else ColumnSeen(column.name, kind)
