"""The readers of sources: in project.yml those of messages, in property files tables that the runner does not make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.errors import Problems, RunnerError, Where, nearest_or_all
from runner.files import is_uri
from runner.patterns import escaped
from runner.project.dead_letters import read_dead_letters
from runner.project.dumps import FORMS, read_dump, read_jdbc, read_place
from runner.project.inputs import (
    ALL,
    ANY_AGE,
    DUMPS,
    PERIODS,
    RAW_KEPT,
    RECORDS,
    Age,
    Dump,
    ExternalTable,
    Freshness,
    Messages,
    Place,
    RawKept,
    Source,
    TableSettings,
)
from runner.project.masks import read_masks, with_unknown
from runner.project.nodes import Node, Project
from runner.project.properties import described_columns, entries, optional_text
from runner.project.settings import as_tuple, read_former_names
from runner.project.sql_analysis import expression
from runner.project.topics import read_topics
from runner.project.variables import Filler, texts_of
from runner.spec.formats import FormatFolders
from runner.spec.schemas import Schemas, read_registry, schemas_at, with_schemas
from runner.spec.values import one_of, read_table_name, read_zone
from runner.spec.vocabulary import LOADS
from runner.spec.words import Format
from runner.yaml_text import Yaml, whole_number

MESSAGE_KEYS = ("files", "table", "kafka", "jdbc")
SOURCE_KEYS = (
    *("name", "description", "format", "schema", "registry", "zone", "generation", "loads", "tables", "freshness"),
    *("dump", "at", "dead_letters", "keep_raw", "mask_unknown_columns", "renamed_from", *MESSAGE_KEYS),
)
# The folder for results of queries, beside the tables; the image of a row in the message that a row becomes.
RESULTS, ROW = "_results", ("row",)
MOST_GENERATIONS = 2**31 - 1
TABLE_KEYS = ("name", "key", "columns", "zone", "mask", "masked_key")


def read_sources(yaml: Yaml | None, formats: FormatFolders, root: Path, filler: Filler) -> list[Source]:
    problems = Problems()
    sources: list[Source] = []
    for entry in yaml.list().elements() if yaml else ():
        with problems.gathered():
            sources.append(_source(entry, formats, root, filler))
    with problems.gathered():
        _unique(sources)
    problems.raise_if_any()
    return sources


def _source(yaml: Yaml, formats: FormatFolders, root: Path, filler: Filler) -> Source:
    yaml.only(SOURCE_KEYS)
    for key in ("name", "format"):
        if not yaml.get(key):
            raise yaml.error("source-missing", f'a source needs "{key}"')
    name = yaml["name"].text()
    if not name.replace("_", "").isalnum():
        raise yaml["name"].error(
            "source-name",
            f'"{name}" cannot be the name of a source',
            "use only letters, digits and _: the name becomes part of table names",
        )
    chosen = read_source_format(yaml["format"], formats, name, _schemas(yaml, root, filler))
    if loads := yaml.get("loads"):
        chosen = replace(chosen, loads=one_of(loads, LOADS, "source-loads", "loads"))
    tables = with_unknown(read_tables(yaml.get("tables")), yaml.get("mask_unknown_columns"))
    at = read_place(yaml["at"], filler) if yaml.get("at") else None
    messages = _messages(yaml, name, chosen, root, filler)
    return Source(
        name,
        chosen,
        replace(messages, dump=_with_tables(yaml, messages.dump, tables, at)) if messages.dump else messages,
        read_zone(yaml.get("zone")),
        optional_text(yaml.get("description")),
        yaml.where(),
        tables,
        _generation(yaml.get("generation")),
        read_freshness(yaml.get("freshness")),
        at,
        read_dead_letters(yaml.get("dead_letters"), chosen),
        _raw_kept(yaml.get("keep_raw")),
        dict(yaml.value),
        read_former_names(yaml.get("renamed_from")),
    )


def _generation(yaml: Yaml | None) -> int:
    number = whole_number(yaml.text()) if yaml else 0
    if yaml and (number is None or number > MOST_GENERATIONS):
        raise yaml.error("source-generation", f'"generation" must be a number from 0, not "{yaml.value}"')
    return number or 0


def _raw_kept(yaml: Yaml | None) -> RawKept:
    """Returns the messages to keep: all of them, all for some days, or only those of dead letters, or none."""
    if not yaml:
        return RawKept()
    number, _, unit = yaml.text().partition(" ")
    if unit in ("day", "days") and (days := whole_number(number)):
        return RawKept(ALL, days)
    if yaml.text() not in RAW_KEPT:
        known = f"{', '.join(RAW_KEPT)}, or a number of days, such as 30 days"
        raise yaml.error("source-keep-raw", f'unknown keep_raw "{yaml.text()}"', f"known: {known}")
    return RawKept(yaml.text())


def _messages(yaml: Yaml, name: str, chosen: Format, root: Path, filler: Filler) -> Messages:
    """Returns the place of a source's messages."""
    kinds = [kind for kind in MESSAGE_KEYS if yaml.get(kind)]
    if len(kinds) != 1:
        raise yaml.error(
            "source-messages",
            f'the source "{name}" must say where its messages are: exactly one of {", ".join(MESSAGE_KEYS)}',
            "files: messages/*.jsonl",
        )
    if kinds[0] == "jdbc":
        _check_rows(yaml["jdbc"], chosen)
        folder = f"{filler.target.path if filler.target else ''}/{RESULTS}/{name}"
        path = f"{folder if is_uri(folder) else escaped(folder)}/*"
        jdbc = read_jdbc(yaml["jdbc"], filler, folder)
        return Messages("rows_files", path, dump=Dump("parquet"), jdbc=jdbc)
    kind = f"binary_{kinds[0]}" if chosen.message.encoding == "avro" else kinds[0]
    of_rows, records = _dump(yaml, kind, chosen)
    if of_rows or records:
        kind = f"{'rows' if of_rows else records}_{kind}"
    schemas = () if chosen.message.skip_bytes or chosen.message.number_bytes else chosen.message.schemas
    if kinds[0] == "kafka":
        topics, place = read_topics(yaml["kafka"], filler)
        return Messages(kind, place, schemas, topics)
    path = filler.text(yaml[kinds[0]])
    # Only what the user writes is a pattern, not the folder that the project happens to be in.
    pattern = path if is_uri(path) or path.startswith("/") else f"{escaped(str(root))}/{path}"
    return Messages(kind, pattern, schemas, dump=of_rows)


def _dump(yaml: Yaml, kind: str, chosen: Format) -> tuple[Dump | None, str]:
    """Returns the form of files of rows; or the form in which files hold records of a topic, an empty text for files of
    messages alone.
    """
    named = yaml.get("dump")
    if named and kind != "files":
        what = "messages in Avro" if kind == "binary_files" else f'"{kind.removeprefix("binary_")}"'
        raise named.error("source-dump", f'"dump" has no meaning for {what}', "files: dump/*.jsonl, with lines of text")
    if named and (isinstance(named.value, dict) or named.text() in FORMS):
        _check_rows(named, chosen)
        return read_dump(named), ""
    if named:
        form = one_of(named, (*DUMPS, *FORMS), "source-dump", "dump")
        if form == "repair":
            _check_rows(named, chosen)
        return None, form
    return None, "json" if kind == "files" and yaml["files"].text().endswith(RECORDS) else ""


def _check_rows(yaml: Yaml, chosen: Format) -> None:
    """Raises `source-dump` unless a format takes its rows from the messages that rows of tables become."""
    if not any(line.after and ROW in line.after.at for line in chosen.op.lines()):
        message = f'{yaml.name()} has rows of tables, and the format "{chosen.name}" reads messages'
        raise yaml.error("source-dump", message, "format: rows")


def _with_tables(yaml: Yaml, dump: Dump, tables: tuple[TableSettings, ...], at: Place | None) -> Dump:
    """Returns what is known of the tables of a dump; raises `source-dump` if nothing names the columns of a table."""
    if not dump.has_header and dump.form in ("csv", "text") and not any(one.columns for one in tables):
        message = "the first line names no columns, and the source does not either"
        hint = "tables: [{name: shop.orders, columns: {id: bigint, note: text}}], in the order of the file"
        raise yaml["dump"].error("source-dump", message, hint)
    return replace(
        dump, tables=tuple((one.name, tuple(one.columns)) for one in tables), taken_at=at.instant if at else ""
    )


def _schemas(yaml: Yaml, root: Path, filler: Filler) -> Schemas:
    named = yaml["schema"].as_list() if yaml.get("schema") else ()
    found = schemas_at([(root / filler.text(one), one.where()) for one in named])
    return replace(found, registry=read_registry(yaml["registry"], root, filler)) if yaml.get("registry") else found


def read_source_format(yaml: Yaml, formats: FormatFolders, name: str, schemas: Schemas) -> Format:
    """Returns the format that a source names or defines itself, with the source's schemas in place of the format's.
    Raises `schema-missing` if the format needs schemas and there are none.
    """
    spec = formats.read(name, formats.inline(yaml)) if isinstance(yaml.value, dict) else formats.load(yaml.text(), yaml)
    return with_schemas(spec, schemas, '"schema: FILE.avsc"', yaml.where())


def read_tables(yaml: Yaml | None) -> tuple[TableSettings, ...]:
    """Returns a source's settings for its tables. A name may lack its first parts: `orders` for `shop.orders`."""
    problems = Problems()
    out: list[TableSettings] = []
    for entry in yaml.list().elements() if yaml else ():
        with problems.gathered():
            entry.only(TABLE_KEYS)
            if not entry.get("name"):
                raise entry.error("name-missing", 'every entry of "tables" needs a "name"')
            key = tuple(column.text() for column in entry["key"].as_list()) if entry.get("key") else ()
            name, zone = read_table_name(entry["name"]), read_zone(entry.get("zone"))
            has_masked_key = _has_masked_key(entry.get("masked_key"))
            masks = read_masks(entry.get("mask"), key, has_masked_key)
            out.append(TableSettings(name, key, texts_of(entry.get("columns")), zone, masks, has_masked_key, entry))
    problems.raise_if_any()
    return tuple(out)


def _has_masked_key(yaml: Yaml | None) -> bool:
    return yaml is not None and one_of(yaml, ("true", "false"), "setting-value", '"masked_key"') == "true"


def _unique(sources: list[Source]) -> None:
    problems = Problems()
    seen: dict[str, Where] = {}
    for source in sources:
        first = seen.setdefault(source.name.lower(), source.where)
        if first != source.where:
            problems.add(
                RunnerError(
                    "name-taken", f'there are two sources "{source.name}"', source.where, f"the other one: {first}"
                )
            )
    problems.raise_if_any()


# --- freshness

FRESHNESS_KEYS = ("warn_after", "error_after", "filter")
AGE_KEYS = ("count", "period")


def read_freshness(yaml: Yaml | None, outer: Freshness = ANY_AGE) -> Freshness:
    """Returns the thresholds of a source, with those of `outer` in place of the ones that the source does not name. An
    empty value means no thresholds. Raises `setting-value`.
    """
    if yaml is None:
        return outer
    if yaml.value is None:
        return ANY_AGE
    yaml.only(FRESHNESS_KEYS)
    said: dict[str, Any] = {key: _threshold(key, one) for key, one in yaml.items()}
    return replace(outer, **said)


def _threshold(key: str, yaml: Yaml) -> Age | str | None:
    if key == "filter":
        return expression(yaml, key) if yaml.value else ""
    return _age(yaml) if yaml.value is not None else None


def _age(yaml: Yaml) -> Age:
    hint = "{count: 12, period: hour}"
    yaml.only(AGE_KEYS)
    count = whole_number(yaml["count"].text()) if yaml.get("count") else None
    if count is None or not yaml.get("period"):
        raise yaml.error("setting-value", "an age is a whole number and a period", hint)
    period = yaml["period"].text()
    if period not in PERIODS:
        raise yaml["period"].error("setting-value", f'no such period: "{period}"', nearest_or_all(period, PERIODS))
    return Age(count, period)


# --- tables that the runner does not make

OF_BOTH = ("name", "description", "config", "meta", "tags", "loaded_at_field", "freshness", "quoting")
GROUP_KEYS = (*OF_BOTH, "database", "schema", "tables", "loader")
GROUP_TABLE_KEYS = (*OF_BOTH, "identifier", "columns", "data_tests", "tests", "external")
SOURCE_CONFIG_KEYS = ("enabled", "tags", "meta", "loaded_at_field", "freshness")
EXTERNAL_KEYS = ("location", "using")
# The storages that Spark reads from a folder without other settings.
FOLDER_STORAGES = ("delta", "parquet", "orc", "json", "avro")


def external_tables(project: Project, files: Iterable[Yaml], problems: Problems) -> Iterator[tuple[Node, Yaml]]:
    """Returns the node and the YAML of each table in property files that is enabled. Mistakes are added to `problems`,
    and tables with mistakes are left out.
    """
    for group in (group for file in files for group in entries(file, "sources", GROUP_KEYS, problems)):
        for table in entries(group, "tables", GROUP_TABLE_KEYS, problems):
            with problems.gathered():
                for one in (group, table):
                    if one.get("config"):
                        one["config"].only(SOURCE_CONFIG_KEYS)
                enabled = (_setting(of, "enabled") for of in (group, table))
                if not any(value and str(value.value).lower() == "false" for value in enabled):
                    yield _external_node(project, group, table), table


def _external_node(project: Project, group: Yaml, table: Yaml) -> Node:
    of_both = (_setting(of, "loaded_at_field") for of in (table, group))
    loaded_at = next((one for one in of_both if one and one.value), None)
    folder, storage = _folder(project, table["external"]) if table.get("external") else ("", "")
    subject = ExternalTable(
        group["name"].text(),
        table["name"].text(),
        _table_name(group, table),
        folder,
        storage,
        expression(loaded_at, "loaded_at_field") if loaded_at else "",
        read_freshness(_setting(table, "freshness"), read_freshness(_setting(group, "freshness"))),
    )
    tags = (tag for of in (group, table) if (value := _setting(of, "tags")) for tag in as_tuple(value.value))
    return Node(
        f"source.{subject.label}",
        "source",
        subject,
        tags=frozenset(tags),
        path=project.relative(table.where().path),
        description=optional_text(table.get("description")),
        columns=described_columns(table),
        where=table.where(),
    )


def _table_name(group: Yaml, table: Yaml) -> tuple[str, ...]:
    """Returns the parts of a table's name: a catalog, if one is named, a schema and a table."""
    schema = optional_text(group.get("schema")) or group["name"].text()
    name = optional_text(table.get("identifier")) or table["name"].text()
    return (*((group["database"].text(),) if group.get("database") else ()), schema, name)


def _folder(project: Project, yaml: Yaml) -> tuple[str, str]:
    yaml.only(EXTERNAL_KEYS)
    if not yaml.get("location"):
        raise yaml.error("setting-value", "a table outside of a catalog needs a location", "location: data/orders")
    location = yaml["location"].text()
    storage = optional_text(yaml.get("using")) or FOLDER_STORAGES[0]
    if storage not in FOLDER_STORAGES:
        raise yaml["using"].error("setting-value", f'cannot read "{storage}"', nearest_or_all(storage, FOLDER_STORAGES))
    # Spark reads the path of a folder of files as a pattern, so the path is escaped.
    found = location if is_uri(location) else str(project.root / location)
    return found if storage == "delta" else escaped(found), storage


def _setting(yaml: Yaml, key: str) -> Yaml | None:
    """Returns the value of a group or a table under a key, in `config` or beside it."""
    config = yaml.get("config")
    return (config and config.get(key)) or yaml.get(key)
