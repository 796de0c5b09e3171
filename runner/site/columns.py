"""Which columns the columns of a model come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runner.compile.compiled import Compiled
from runner.contract import COLUMNS
from runner.csv_text import read_csv
from runner.project.graph import Graph
from runner.project.inputs import Source
from runner.project.lineage import columns_read
from runner.project.mirror import MirrorQuery
from runner.project.nodes import Model, Node, SeedFile, SourcesView

# Longer SQL takes seconds to analyse.
LONGEST = 40_000

# What a page says of a model: the columns of its table, in their order; what each comes from, as [node, column]; and
# if this is known only in words, these.
Columns = dict[str, Any]


def columns_of_models(graph: Graph, compiled: Compiled) -> dict[str, Columns]:
    """Name of a model -> its columns."""
    out: dict[str, Columns] = {}
    for name in graph.order():
        node = graph.nodes[name]
        if node.model:
            out[name] = _columns(node, node.model, compiled, _read(graph, node, out))
    return out


def _read(graph: Graph, node: Node, known: Mapping[str, Columns]) -> dict[str, tuple[str, list[str]]]:
    """What SQL calls the models that a node reads -> their names and their columns, as far as these are known."""
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
    sql = compiled.nodes[node.name].sql
    tables = {relation: columns for relation, (_, columns) in known.items()}
    read = columns_read(sql, tables) if len(sql) <= LONGEST else None
    if read is None:
        return _in_words(node.columns, "the SQL does not tell which columns these come from")
    return {
        "names": list(read),
        "from": {name: [[known[of][0] if of in known else of, one] for of, one in ends] for name, ends in read.items()},
        "words": "",
    }


def _in_words(names: Iterable[str], words: str, same: bool = False) -> Columns:
    return {"names": list(names), "from": {}, "words": words, **({"same": True} if same else {})}
