"""Waivers: written into a project.yml, of which the rest of the text stays as it is; and those that have ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import yaml

from runner.errors import RunnerWarning
from runner.project.inputs import Waiver
from runner.project.mirror import Acknowledged, MirrorQuery
from runner.project.nodes import Node, Project
from runner.yaml_text import last_leaf


def with_waiver(text: str, source: str, waiver: Mapping[str, str]) -> str:
    """Returns the text of a project.yml with one more waiver of dead letters of a source.

    >>> print(with_waiver("sources:\\n  - name: shop\\n    files: in/*\\n", "shop", {"reason": "empty"}), end="")
    sources:
      - name: shop
        files: in/*
        dead_letters:
          waived:
            - {reason: "empty"}
    >>> print(with_waiver("sources: [{name: shop, dead_letters: {warn: 5}}]", "shop", {"reason": "empty"}))
    sources: [{name: shop, dead_letters: {warn: 5, waived: [{reason: "empty"}]}}]
    """
    entry = f"{{{', '.join(f'{key}: {json.dumps(value, ensure_ascii=False)}' for key, value in waiver.items())}}}"
    sources = _values(yaml.compose(text))["sources"].value
    own = next(one for one in sources if _values(one)["name"].value == source)
    letters = _values(own).get("dead_letters")
    waived = _values(letters).get("waived") if letters else None
    if waived:
        return _with_last(text, waived, entry, [f"- {entry}"])
    if letters:
        return _with_last(text, letters, f"waived: [{entry}]", ["waived:", f"  - {entry}"])
    lines = ["dead_letters:", "  waived:", f"    - {entry}"]
    return _with_last(text, own, f"dead_letters: {{waived: [{entry}]}}", lines)


def _values(mapping: Any) -> dict[str, Any]:
    return {key.value: value for key, value in mapping.value}


def _with_last(text: str, collection: Any, flow: str, lines: Sequence[str]) -> str:
    """Returns the text with one more element of a list, or key of a mapping: within brackets, or on lines of its
    own.
    """
    if collection.flow_style:
        end = collection.end_mark.index - 1
        return f"{text[:end]}{', ' if collection.value else ''}{flow}{text[end:]}"
    end = text.find("\n", last_leaf(collection).end_mark.index)
    end = len(text) if end < 0 else end
    indent = " " * collection.start_mark.column
    return text[:end] + "".join(f"\n{indent}{line}" for line in lines) + text[end:]


def ended_waivers(project: Project, nodes: Iterable[Node], today: date) -> Iterator[RunnerWarning]:
    """Yields a warning for each waiver, and for what is acknowledged in mirrors, that holds no more: what it was about
    counts again.
    """
    queries = (node.model.query for node in nodes if node.model)
    mirrors = [query.mirror for query in queries if isinstance(query, MirrorQuery)]
    # A rule has one place for all its mirrors, and a mirror may have two tables.
    noted = {(one.where, one): one for mirror in mirrors for one in mirror.acknowledged}
    waivers: list[Waiver | Acknowledged] = [one for source in project.sources for one in source.dead_letters.waived]
    for known in (*waivers, *noted.values()):
        if known.has_ended(today):
            what = f"this held until {known.until}, and has ended: {known.because}"
            hint = "if nothing is left of it, remove it; else set until to a later day"
            yield RunnerWarning("waiver-ended", what, known.where, hint)
