"""The lineage of columns: from which columns of which nodes the columns of a model come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runner.compile.compiled import Compiled
from runner.contract import COLUMNS
from runner.csv_text import read_csv
from runner.project.inputs import Source
from runner.project.mirror import META, Mirror, MirrorColumn, MirrorQuery
from runner.project.nodes import Graph, Model, Node, SeedFile, SourcesView
from runner.project.sql_analysis import columns_read

# The most characters of SQL that are analysed: longer SQL takes seconds.
LONGEST = 40_000

# The columns of a model: the names of the table's columns, in their order; the origins of each, as [node, column], or
# [node, column, member] for what a map has under a key; and words, if the origins are known only in words.
Columns = dict[str, Any]

# Own column of a mirror -> the columns of a changelog from which it comes. Values that do not fit come from images.
OWN_ORIGINS = {
    **dict.fromkeys(("valid_from", "valid_to"), ("event_time", "produced_at", "origin")),
    "op": ("op",),
    "_changed_at": ("event_time",),
    "_seq": ("seq",),
    "_source": ("source",),
    **dict.fromkeys(("_unfit", "_in_parts"), ("before", "after")),
}


def columns_of_models(graph: Graph, compiled: Compiled) -> dict[str, Columns]:
    """Returns the columns of each model, by the model's name; those of models that were not compiled only in words."""
    out: dict[str, Columns] = {}
    for name in graph.order():
        node = graph.nodes[name]
        if node.model:
            out[name] = _columns(node, node.model, compiled, _read(graph, node, out))
    return out


def _read(graph: Graph, node: Node, known: Mapping[str, Columns]) -> dict[str, tuple[str, list[str]]]:
    """Returns the names and the known columns of the models that a node reads, by the names that SQL uses for them."""
    return {
        graph.nodes[parent].relation: (parent, known[parent]["names"])
        for parent in node.parents
        if known.get(parent, {}).get("names")
    }


def _columns(node: Node, model: Model, compiled: Compiled, known: Mapping[str, tuple[str, list[str]]]) -> Columns:
    match model.query:
        case Source(format=spec):
            return _in_words(COLUMNS, f"from the messages, as the format {spec.name} says")
        case SourcesView() if node.columns:
            return _in_words(COLUMNS, "the columns of the same names of all changelogs", same=True)
        case MirrorQuery(mirror=mirror, columns=columns):
            told = {column.name: list(_told(mirror, column)) for column in mirror.columns}
            own = {name: [[one, of] for one in mirror.models for of in OWN_ORIGINS.get(name, ())] for name in columns}
            return {"names": list(columns), "from": {**own, **told}, "words": ""}
        case SeedFile() as file:
            return _in_words(read_csv(file.path, file.delimiter).columns, f"from the file {node.path}")
    sql = compiled.nodes[node.name].sql if node.name in compiled.nodes else ""
    tables = {relation: columns for relation, (_, columns) in known.items()}
    read = columns_read(sql, tables) if 0 < len(sql) <= LONGEST else None
    if read is None:
        return _in_words(node.columns, "the SQL does not tell which columns these come from")
    return {
        "names": list(read),
        "from": {
            name: [[known[of][0] if of in known else of, *one] for of, *one in ends] for name, ends in read.items()
        },
        "words": "",
    }


def _told(mirror: Mirror, column: MirrorColumn) -> Iterator[list[str]]:
    """Yields what changes tell of a column of a mirror: members of their images and keys, or of `meta`."""
    images = (*(["key"] if column.is_key else []), "after", "before")
    for model in mirror.models:
        for name in (column.name, *column.sent_as):
            beside = name.removeprefix(META)
            if beside == name:
                yield from ([model, image, name] for image in images)
            else:
                # The name of a row's table is no member of `meta`, though it is sent as if it were.
                yield [model, "table_name"] if beside == "table" else [model, "meta", beside]


def known_types(model: Model) -> Mapping[str, str]:
    """Returns the types of the columns of a model that are known before its query runs."""
    match model.query:
        case MirrorQuery(columns=columns):
            return columns
        case Source():
            return COLUMNS
    return model.contract.types if model.contract else {}


def _in_words(names: Iterable[str], words: str, same: bool = False) -> Columns:
    return {"names": list(names), "from": {}, "words": words, **({"same": True} if same else {})}
