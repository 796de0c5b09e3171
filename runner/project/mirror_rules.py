"""Rules for many mirrors: one entry under `mirrors` stands for a mirror of each table that its patterns match."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from runner.errors import Problems, nearest_or_all
from runner.project.acknowledged import read_acknowledged
from runner.project.inputs import Source
from runner.project.mirrors import MIRROR_KEYS
from runner.project.tables_seen import TableSeen
from runner.spec.values import one_of
from runner.yaml_text import Yaml

RULE_KEYS = (
    *("tables", "except", "of", "name", "into", "new_tables", "schema", "tables_like"),
    *(key for key in MIRROR_KEYS if key not in ("name", "of", "columns")),
)
LIKE_KEYS = ("name", *(key for key in MIRROR_KEYS if key not in ("name", "of")))
NEW_TABLES = ("add", "warn")
# What becomes of a mirror when its table changes: kind of change -> the ways to take it; the first is the default.
SCHEMA = {
    "add": ("follow", "keep", "warn", "fail"),
    "widen": ("follow", "keep", "warn"),
    "narrow": ("keep", "follow", "warn"),
    "drop": ("keep", "follow", "warn"),
    "rename": ("follow", "keep", "warn"),
}
PLACES = ("source", "tenant", "db", "schema", "table")
PLACE = re.compile(r"\{(\w*)\}")
WILD = re.compile(r"[*?\[]")
# The parts of a pattern: in quotes, or up to the next dot.
PART = re.compile(r'"([^"]+)"|([^."]+)')
PATTERN = re.compile(r'(?:"[^"]+"|[^."]+)(?:\.(?:"[^"]+"|[^."]+)){0,3}')

Pattern = tuple[str, ...]


@dataclass(frozen=True)
class MirrorRule:
    """A rule as written. Of the tables of `source`, it is for those that one of `tables` matches and none of `left`.
    A pattern matches the last parts of a name. `like` are settings for the tables that a pattern matches. `repairs` is
    the source of repairs of these mirrors, if there is one.
    """

    yaml: Yaml
    source: Source
    tables: tuple[Pattern, ...]
    left: tuple[Pattern, ...]
    name: str
    into: str
    new_tables: str
    schema: Mapping[str, str]
    like: tuple[tuple[Pattern, Yaml], ...]
    repairs: Source | None = None

    def matches(self, table: TableSeen) -> bool:
        """Returns True if the rule is for a table."""
        return any(matches(one, table) for one in self.tables) and not any(matches(one, table) for one in self.left)

    def makes_mirror(self, table: TableSeen) -> bool:
        """Returns True if the rule makes a mirror of a table that it is for. A new table whose name the rule does not
        write out may have to wait for a person.
        """
        named = (*self.tables, *(pattern for pattern, _ in self.like))
        is_named = any(matches(one, table) and not WILD.search("".join(one)) for one in named)
        return self.new_tables == "add" or is_named or not table.is_new


def is_rule(entry: Yaml) -> bool:
    """Returns True if an entry under `mirrors` is a rule."""
    return isinstance(entry.value, dict) and "tables" in entry.value


def read_rule(yaml: Yaml, sources: Mapping[str, Source]) -> MirrorRule:
    """Returns a rule; raises all mistakes in it."""
    problems = Problems()
    source: Source | None = None
    repairs: Source | None = None
    tables: tuple[Pattern, ...] = ()
    left: tuple[Pattern, ...] = ()
    like: tuple[tuple[Pattern, Yaml], ...] = ()
    schema = {kind: ways[0] for kind, ways in SCHEMA.items()}
    with problems.gathered():
        yaml.only(RULE_KEYS)
    with problems.gathered():
        source, repairs = _sources(yaml, sources)
    with problems.gathered():
        tables = tuple(_pattern(one.text(), one) for one in yaml["tables"].as_list())
    with problems.gathered():
        left = tuple(_pattern(one.text(), one) for one in yaml["except"].as_list()) if yaml.get("except") else ()
    with problems.gathered():
        like = tuple(_like(yaml["tables_like"])) if yaml.get("tables_like") else ()
    with problems.gathered():
        read_acknowledged(yaml.get("acknowledged"))
    with problems.gathered():
        for one in (yaml, *(settings for _, settings in like)):
            _check_places(one, "renamed_from")
    with problems.gathered():
        schema |= dict(_schema(yaml["schema"])) if yaml.get("schema") else {}
    name, into, new_tables = "{table}", "", NEW_TABLES[0]
    with problems.gathered():
        name, into = _names(yaml)
    with problems.gathered():
        if yaml.get("new_tables"):
            new_tables = one_of(yaml["new_tables"], NEW_TABLES, "mirror-setting", '"new_tables"')
    problems.raise_if_any()
    if source is None:
        raise AssertionError("a rule without a source has a problem")
    return MirrorRule(yaml, source, tables, left, name, into, new_tables, schema, like, repairs)


def _sources(yaml: Yaml, sources: Mapping[str, Source]) -> tuple[Source, Source | None]:
    """Returns the source of the tables of a rule, and the one of repairs, if `of` names one."""
    entries = list(yaml["of"].as_list()) if yaml.get("of") else []
    if not entries or not all(entry.mapping().get("source") for entry in entries):
        raise yaml.error("mirror-missing", 'a rule needs the source of its tables under "of"', "of: {source: shop}")
    names = [entry.only(("source",))["source"] for entry in entries]
    for name in names:
        if name.text() not in sources:
            hint = nearest_or_all(name.text(), sources)
            raise name.error("source-unknown", f'there is no source "{name.text()}"', hint)
    found = [sources[name.text()] for name in names]
    if [one.messages.are_repairs for one in found] not in ([False], [False, True][: 1 + (not yaml.get("into"))]):
        message = "a rule has one source of tables and, without into, one of repairs behind it"
        raise names[-1].error("mirror-setting", message, "of: [{source: shop}, {source: repairs}]")
    return found[0], found[1] if len(found) > 1 else None


def _pattern(text: str, yaml: Yaml) -> Pattern:
    """Returns the parts of a pattern.

    >>> _pattern('shop."v1.orders_*"', Yaml("", {}))
    ('shop', 'v1.orders_*')
    """
    parts = tuple(quoted or plain for quoted, plain in PART.findall(text))
    if not PATTERN.fullmatch(text):
        message = f'"{text}" is no pattern for names of tables'
        raise yaml.error("mirror-pattern", message, "for instance: shop.orders, shop.*, 'shop.\"v1.*\"'")
    return parts


def matches(pattern: Pattern, table: TableSeen) -> bool:
    names = table.names[-len(pattern) :]
    return len(names) == len(pattern) and all(fnmatchcase(name, part) for name, part in zip(names, pattern))


def _like(yaml: Yaml) -> Iterator[tuple[Pattern, Yaml]]:
    problems = Problems()
    for text, settings in yaml.mapping().items():
        with problems.gathered():
            read_acknowledged(settings.mapping().only(LIKE_KEYS).get("acknowledged"))
            yield _pattern(text, settings), settings
    problems.raise_if_any()


def _schema(yaml: Yaml) -> Iterator[tuple[str, str]]:
    for kind, way in yaml.only(SCHEMA).items():
        yield kind, one_of(way, SCHEMA[kind], "mirror-setting", f'"{kind}"')


def _names(yaml: Yaml) -> tuple[str, str]:
    """Returns the template of the names of mirrors, and the name of the one mirror of all tables, if there is one."""
    name = yaml["name"].text() if yaml.get("name") else "{table}"
    if yaml.get("into"):
        if yaml.get("name"):
            raise yaml["name"].error("mirror-setting", '"name" has no meaning beside "into", which is the name')
        return name, yaml["into"].text()
    _check_places(yaml, "name")
    return name, ""


def _check_places(yaml: Yaml, key: str) -> None:
    """Raises `mirror-setting` for a place in the templates under a key that no name of a table has."""
    for template in yaml[key].as_list() if yaml.get(key) else ():
        for place in PLACE.findall(template.text()):
            if place not in PLACES:
                hint = nearest_or_all(place, PLACES)
                raise template.error("mirror-setting", f'"{{{place}}}" is no part of a table\'s name', hint)
