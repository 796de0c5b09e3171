"""The lineage of columns: from which columns of which nodes the columns of a model come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runner.compile.compiled import Compiled
from runner.contract import COLUMNS
from runner.csv_text import read_csv
from runner.project.inputs import Source
from runner.project.mirror import MirrorQuery
from runner.project.nodes import Graph, Model, Node, SeedFile, SourcesView
from runner.project.sql_analysis import columns_read

# The most characters of SQL that are analysed: longer SQL takes seconds.
LONGEST = 40_000

# The columns of a model: the names of the table's columns, in their order; the origins of each, as
# [node, column]; and words, if the origins are known only in words.
Columns = dict[str, Any]


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
            own = {column.name for column in mirror.columns}
            images = [[parent, image] for parent in mirror.models for image in ("after", "before")]
            return {"names": list(columns), "from": {name: images for name in columns if name in own}, "words": ""}
        case SeedFile() as file:
            return _in_words(read_csv(file.path, file.delimiter).columns, f"from the file {node.path}")
    sql = compiled.nodes[node.name].sql if node.name in compiled.nodes else ""
    tables = {relation: columns for relation, (_, columns) in known.items()}
    read = columns_read(sql, tables) if 0 < len(sql) <= LONGEST else None
    if read is None:
        return _in_words(node.columns, "the SQL does not tell which columns these come from")
    return {
        "names": list(read),
        "from": {name: [[known[of][0] if of in known else of, one] for of, one in ends] for name, ends in read.items()},
        "words": "",
    }


def _in_words(names: Iterable[str], words: str, same: bool = False) -> Columns:
    return {"names": list(names), "from": {}, "words": words, **({"same": True} if same else {})}
