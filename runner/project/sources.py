"""The reader of `sources` in project.yml: the place and the format of each source's messages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from runner.errors import Problems, RunnerError, Where
from runner.files import is_uri
from runner.patterns import escaped
from runner.project.freshness import read_freshness
from runner.project.inputs import DUMPS, RECORDS, Messages, Source, TableSettings
from runner.project.properties import optional_text
from runner.project.topics import read_topics
from runner.project.variables import Filler, texts_of
from runner.spec.formats import FormatFolders
from runner.spec.schemas import Schemas, read_registry, schemas_at, with_schemas
from runner.spec.values import one_of, read_path, read_zone
from runner.spec.vocabulary import LOADS
from runner.spec.words import Format
from runner.yaml_text import Yaml, whole_number

MESSAGE_KEYS = ("files", "table", "kafka")
SOURCE_KEYS = (
    *("name", "description", "format", "schema", "registry", "zone", "generation", "loads", "tables", "freshness"),
    *("dump", *MESSAGE_KEYS),
)
MOST_GENERATIONS = 2**31 - 1
TABLE_KEYS = ("name", "key", "columns", "zone")
# Tenant, database, schema and table.
MOST_PARTS = 4


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
    return Source(
        name,
        chosen,
        _messages(yaml, name, chosen, root, filler),
        read_zone(yaml.get("zone")),
        optional_text(yaml.get("description")),
        yaml.where(),
        read_tables(yaml.get("tables")),
        _generation(yaml.get("generation")),
        read_freshness(yaml.get("freshness")),
        dict(yaml.value),
    )


def _generation(yaml: Yaml | None) -> int:
    number = whole_number(yaml.text()) if yaml else 0
    if yaml and (number is None or number > MOST_GENERATIONS):
        raise yaml.error("source-generation", f'"generation" must be a number from 0, not "{yaml.value}"')
    return number or 0


def _messages(yaml: Yaml, name: str, chosen: Format, root: Path, filler: Filler) -> Messages:
    """Returns the place of a source's messages."""
    kinds = [kind for kind in MESSAGE_KEYS if yaml.get(kind)]
    if len(kinds) != 1:
        raise yaml.error(
            "source-messages",
            f'the source "{name}" must say where its messages are: exactly one of {", ".join(MESSAGE_KEYS)}',
            "files: messages/*.jsonl",
        )
    kind = f"binary_{kinds[0]}" if chosen.message.encoding == "avro" else kinds[0]
    if dump := _dump(yaml, kind):
        kind = f"{dump}_{kind}"
    schemas = () if chosen.message.skip_bytes or chosen.message.number_bytes else chosen.message.schemas
    if kinds[0] == "kafka":
        topics, place = read_topics(yaml["kafka"], filler)
        return Messages(kind, place, schemas, topics)
    path = filler.text(yaml[kinds[0]])
    # Only what the user writes is a pattern, not the folder that the project happens to be in.
    return Messages(kind, path if is_uri(path) or path.startswith("/") else f"{escaped(str(root))}/{path}", schemas)


def _dump(yaml: Yaml, kind: str) -> str:
    """Returns the form in which files hold records of a topic; an empty text for files of messages alone."""
    named = yaml.get("dump")
    if named and kind != "files":
        what = "messages in Avro" if kind == "binary_files" else f'"{kind.removeprefix("binary_")}"'
        raise named.error("source-dump", f'"dump" has no meaning for {what}', "files: dump/*.jsonl, with lines of text")
    if named:
        return one_of(named, DUMPS, "source-dump", "dump")
    return "json" if kind == "files" and yaml["files"].text().endswith(RECORDS) else ""


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
            out.append(TableSettings(name, key, texts_of(entry.get("columns")), zone, entry))
    problems.raise_if_any()
    return tuple(out)


def read_table_name(yaml: Yaml) -> tuple[str, ...]:
    """Returns the parts of a table's name; raises `spec-path` if there are too many parts or they cannot be read."""
    parts = tuple(read_path(yaml))
    if len(parts) > MOST_PARTS:
        raise yaml.error(
            "spec-path",
            f'the table name "{yaml.text()}" has {len(parts)} parts',
            'it may have four: tenant, database, schema, table; put a part with dots in quotes: shop."v1.orders"',
        )
    return parts


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
