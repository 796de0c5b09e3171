"""formats diff: what two formats make of the same messages, and which keys of their specs differ."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.commands.arguments import Call
from runner.commands.parse import messages_in, read_file
from runner.commands.session import is_little, open_spark
from runner.compile.compiled import CompiledNode
from runner.compile.library import Library
from runner.compile.query import compile_format
from runner.counts import counted
from runner.errors import RunnerError, Where, did_you_mean, from_here
from runner.grid import json_text
from runner.project.inputs import RECORDS, TableSettings, Target
from runner.project.sources import read_tables
from runner.run.format_diff import Differences, Key, differing_keys, ordered
from runner.run.workspace import folders_of, format_renderer
from runner.spec.formats import FormatFolders
from runner.spec.schemas import Schemas, schemas_at, with_schemas
from runner.spec.values import read_zone
from runner.yaml_text import Yaml, read_yaml

if TYPE_CHECKING:
    from runner.engine.session import Spark
    from runner.functions.avro.files import FileMessage

SPECS = (".yml", ".yaml")
ROWS = ".rows.yml"
ENDINGS = {"json": (RECORDS, ".messages.jsonl"), "avro": (".messages.base64",)}
DIFFERING = ("column", "messages", "place", "a", "b")
KEYS = ("key", "a", "a_at", "b", "b_at")


class Side(NamedTuple):
    """One of the two formats: its name, and its spec with all that it inherits."""

    name: str
    spec: Yaml


class Given(NamedTuple):
    """Messages, each with its place as people see it, and what a source would declare about them."""

    messages: list[FileMessage]
    places: list[str]
    zone: str | None
    tables: tuple[TableSettings, ...]
    schemas: Schemas


def diff(call: Call, words: Sequence[str], messages: str | None, cases: str | None, output: str) -> None:
    """Prints what differs in the rows that two formats make of a file of messages or, without one, of the messages of
    cases: those of a format that is named, else those of the two and of the formats that both extend. Then prints the
    keys of their specs that differ. Raises `usage`, `format-unknown` and `file-missing`, and all mistakes in the specs.
    """
    if len(words) != 2 or (messages and cases):
        message = "formats diff needs two formats, and messages of a file or of cases"
        raise RunnerError("usage", message, hint="runner formats diff A B --messages FILE")
    folders = FormatFolders(folders_of(call.project, "formats"))
    a, b = (_side(folders, word) for word in words)
    encodings = [folders.read(*side).message.encoding for side in (a, b)]
    if encodings[0] != encodings[1]:
        what = f'"{words[0]}" reads {encodings[0]}, and "{words[1]}" reads {encodings[1]}: no message is of both'
        raise RunnerError("usage", what, hint="runner formats show NAME")
    given = list(_given(call, folders, (a, b), messages, cases, encodings[0]))
    if not given:
        raise RunnerError("usage", "there are no cases with messages for these formats", hint="--messages FILE")
    found = _compared(call, folders, (a, b), given)
    keys = list(differing_keys(a.spec, b.spec))
    if output == "json":
        call.report.payload(json_text(_as_json(words, found, keys)))
    else:
        _print(call, words, found, keys)


def _side(folders: FormatFolders, word: str) -> Side:
    """Returns the format of a name, or that of a spec in a file; raises `format-unknown` and `file-missing`."""
    if not word.endswith(SPECS):
        return Side(word, folders.resolved(word))
    path = Path(word)
    if not path.is_file():
        others = [str(path.with_name(one.name)) for one in path.parent.glob("*") if one.suffix in SPECS]
        raise RunnerError("file-missing", f'there is no file "{word}"', hint=did_you_mean(word, others))
    return Side(path.stem, folders.resolved_at(path))


# --- messages


def _given(
    call: Call, folders: FormatFolders, sides: tuple[Side, Side], file: str | None, cases: str | None, encoding: str
) -> Iterator[Given]:
    if file:
        read = messages_in(file, read_file(file), encoding)
        zone = read_zone(Yaml(call.flags["zone"], {(): Where(Path("--zone"))}))
        schemas = schemas_at([(path, None) for path in call.flags["schema"]])
        yield Given(read.messages, [f"{file}:{line}" for line in read.lines], zone, (), schemas)
        return
    if cases:
        folders.resolved(cases)
    names = [cases] if cases else _with_cases(folders, *sides)
    together: dict[str, Given] = {}
    for path in (one for name in names for folder in folders.folders for one in _cases(folder, name)):
        _add_case(together, path, encoding)
    yield from together.values()


def _with_cases(folders: FormatFolders, a: Side, b: Side) -> list[str]:
    """Returns the names of two formats and of the formats that both extend."""
    extended = [_extended(folders, side.spec, {}) for side in (a, b)]
    return list(dict.fromkeys((a.name, b.name, *(name for name in extended[0] if name in extended[1]))))


def _extended(folders: FormatFolders, spec: Yaml, known: dict[str, None]) -> dict[str, None]:
    parents = spec.get("extends")
    for parent in parents.as_list() if parents else ():
        if parent.text() not in known:
            known[parent.text()] = None
            _extended(folders, folders.resolved(parent.text()), known)
    return known


def _cases(folder: Path, name: str) -> list[Path]:
    return sorted((folder / "cases" / name).glob(f"*{ROWS}"))


def _add_case(together: dict[str, Given], path: Path, encoding: str) -> None:
    """Adds the messages of a case to those of other cases whose sources declare the same. A case with a format of its
    own is of neither format.
    """
    from runner.run.documents import messages_of

    case = read_yaml(path)
    source = case.get("source") or Yaml({}, case.places)
    names = [path.name.removesuffix(ROWS) + ending for ending in ENDINGS[encoding]]
    file = next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)
    if source.get("format") or not file:
        return
    named = source["schema"].as_list() if source.get("schema") else ()
    schemas: list[tuple[Path, Where | None]] = [(one.where().path.parent / one.text(), one.where()) for one in named]
    settings = repr((source.value, [place for place, _ in schemas]))
    if settings not in together:
        zone, tables = read_zone(source.get("zone")), read_tables(source.get("tables"))
        together[settings] = Given([], [], zone, tables, schemas_at(schemas))
    content = file.read_bytes()
    lines = [number for number, line in enumerate(content.split(b"\n"), 1) if line.strip(b" \t\r")]
    messages = messages_of(file.name, content, encoding)
    numbers = lines if len(lines) == len(messages) else range(1, len(messages) + 1)
    together[settings].messages.extend(messages)
    together[settings].places.extend(f"{path.parent.name}/{file.name}:{number}" for number in numbers)


# --- rows


def _compared(call: Call, folders: FormatFolders, sides: tuple[Side, Side], given: list[Given]) -> Differences:
    """Returns what differs in the rows that two formats make of messages."""
    from runner.run.source_files import starting_is_longer

    renderer, found = format_renderer(call.project), Differences()
    library, queries = Library(renderer), list[tuple[CompiledNode, ...]]()
    for number, one in enumerate(given):
        specs = [with_schemas(folders.read(*side), one.schemas, "the schema", None) for side in sides]
        prefixes = [f"diff {number} {letter}" for letter in "ab"]
        compiled = [
            compile_format(renderer.call, spec, "diff", one.zone, one.tables, prefix)
            for spec, prefix in zip(specs, prefixes)
        ]
        queries.append(tuple(map(library.complete, compiled)))
    size, count = sum(len(m.raw) for one in given for m in one.messages), sum(len(one.messages) for one in given)
    folder = Path(tempfile.gettempdir()) / "runner-parse"
    target = Target("parse", str(folder))
    with open_spark(target, folder / "logs" / "spark.log", library, call.report, is_little(size, count)) as opened:
        with call.report.during(f"reading {counted(count, 'message')}"):
            spark = opened.for_messages(starting_is_longer(size, count))
            for one, (a, b) in zip(given, queries):
                found.add(one.places, _rows(spark, a, one), _rows(spark, b, one))
    return found


def _rows(spark: Spark, query: CompiledNode, given: Given) -> list[dict[str, Any]]:
    from runner.engine.messages import messages_view

    messages_view(spark, given.messages, query.encoding, "diff_messages")
    spark.register(query.functions, query.sql_functions)
    return spark.rows(query.sql)[1]


# --- output


def _print(call: Call, words: Sequence[str], found: Differences, keys: Sequence[Key]) -> None:
    report = call.report
    report.payload(f"a is {words[0]}, b is {words[1]}")
    only = [
        f"{sum(one.values())} landed only by {letter}{_rows_in_words(one)}" for one, letter in zip(found.only, "ab")
    ]
    counts = (f"{found.same} the same", f"{found.other} with other rows", *only)
    report.payload(f"{counted(found.messages, 'message')}: {', '.join(counts)}")
    if found.kinds:
        rows = [
            {"column": one.column, "messages": count, "place": where, "a": _text(one.a), "b": _text(one.b)}
            for count, where, one in ordered(found)
        ]
        report.table(DIFFERING, rows)
    if keys:
        report.table(KEYS, [_key(key) for key in keys])


def _rows_in_words(only: dict[str, int]) -> str:
    return f" ({', '.join(f'{count} {rows}' for rows, count in sorted(only.items()))})" if only else ""


def _text(value: list[Any] | None) -> str:
    """Returns a value as a cell has it, empty if there is none."""
    return "" if value is None else value[0] if isinstance(value[0], str) else json_text(value[0])


def _key(key: Key) -> dict[str, str]:
    row = {"key": key.key}
    for letter, yaml in (("a", key.a), ("b", key.b)):
        value = None if yaml is None else [yaml.value]
        row |= {letter: _text(value), f"{letter}_at": _at(yaml)}
    return row


def _at(yaml: Yaml | None) -> str:
    return f"{from_here(yaml.where().path)}:{yaml.where().line}" if yaml else ""


def _as_json(words: Sequence[str], found: Differences, keys: Sequence[Key]) -> dict[str, Any]:
    return {
        "a": words[0],
        "b": words[1],
        "messages": found.messages,
        "same": found.same,
        "other_rows": found.other,
        "landed_only_by_a": dict(found.only[0]),
        "landed_only_by_b": dict(found.only[1]),
        "differences": [
            {"column": one.column, "messages": count, "place": where, **_values(one.a, one.b)}
            for count, where, one in ordered(found)
        ],
        "keys": [_key_as_json(key) for key in keys],
    }


def _values(a: list[Any] | None, b: list[Any] | None) -> dict[str, Any]:
    return {letter: value[0] for letter, value in (("a", a), ("b", b)) if value is not None}


def _key_as_json(key: Key) -> dict[str, Any]:
    places = {f"{letter}_at": _at(yaml) for letter, yaml in (("a", key.a), ("b", key.b)) if yaml}
    return {"key": key.key, **_values(*(None if one is None else [one.value] for one in (key.a, key.b))), **places}
