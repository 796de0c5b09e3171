"""What is read of messages in JSON, and how deep their lists and objects lie in each other."""

from __future__ import annotations

from dataclasses import dataclass

from runner.compile.images import grouped
from runner.compile.paths import TEXT, Tree, depth, image_paths, json_fields, leaves, plant
from runner.errors import RunnerError
from runner.spec.vocabulary import OTHERS
from runner.spec.words import FieldPath, Format

# The seal, and what Spark writes where a field of a document has another type than is read.
ADDED = ("_seal", "_corrupt_record")


@dataclass(frozen=True)
class JsonReading:
    """`exact`: whether numbers are put in quotes to keep their digits. `fields` is the tree of what is read,
    `sealed_fields` the same with the fields that are ours. `usual_depth` is how deep lists and objects lie in each
    other if all values are plain; `shallow` are the paths and types of texts and images that could hold more without
    being deeper. `texts` has the path of each object with the names of its fields that are texts, `others` all other
    fields with their types, `images` the places of images.
    """

    exact: bool
    fields: Tree
    sealed_fields: Tree
    usual_depth: int
    shallow: list[tuple[tuple[str, ...], str]]
    texts: dict[tuple[str, ...], list[str]]
    others: list[tuple[tuple[str, ...], str]]
    images: list[FieldPath]


def json_reading(spec: Format) -> JsonReading:
    """What a format reads; raises `spec-conflict` for a field that is read as two different things, or that has the
    name of one of ours.
    """
    fields: Tree = {}
    for path, kind in json_fields(spec):
        if path[-1] == OTHERS:
            raise RunnerError(
                "spec-path", f'"{OTHERS}" at the end of a path works only with encoding: avro', path.where
            )
        if path[0] in ADDED:
            raise RunnerError("spec-conflict", f'"{path[0]}" is a field that the compiled SQL adds itself', path.where)
        plant(fields, path, kind)
    found, images = list(leaves(fields)), image_paths(spec)
    deepest = max((depth(path, kind) for path, kind in found), default=0)
    return JsonReading(
        exact=spec.message.numbers == "exact",
        fields=fields,
        sealed_fields=fields | dict.fromkeys(ADDED, TEXT),
        usual_depth=deepest,
        shallow=[
            (path, kind) for path, kind in found if (kind == TEXT or path in images) and depth(path, kind) < deepest
        ],
        texts=dict(grouped((path[:-1], path[-1]) for path, kind in found if kind == TEXT)),
        others=[(path, kind) for path, kind in found if kind != TEXT],
        images=images,
    )
