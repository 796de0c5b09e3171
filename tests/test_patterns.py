"""Patterns for the names of files, in a folder whose name has special characters."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.patterns import escaped, matching, with_colon


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.jsonl", {"a.jsonl", "[a].jsonl", ".h.jsonl", "a\nb.jsonl"}),
        ("[ab].jsonl", {"a.jsonl"}),
        (r"\[a\].jsonl", {"[a].jsonl"}),
        ("[!a].jsonl", set()),
        ("[^x].jsonl", {"a.jsonl"}),
        ("{a,x}.{jsonl,csv}", {"a.jsonl", "x.csv"}),
        ("{a.jsonl,sub/{p,q}.txt}", {"a.jsonl", "sub/p.txt"}),
        ("?.csv", {"x.csv"}),
        ("./sub/../x.csv", {"x.csv"}),
        ("none/*", set()),
        ("s*", {"sub"}),
        ("sub/*", {"sub/p.txt", "sub/1:2"}),
    ],
)
def test_patterns_match_as_those_of_hadoop(tmp_path: Path, pattern: str, names: set[str]) -> None:
    root = tmp_path / "r [1]*"
    for name in ("a.jsonl", "[a].jsonl", ".h.jsonl", "a\nb.jsonl", "x.csv", "sub/p.txt", "sub/1:2"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    found = matching(f"{escaped(str(root))}/{pattern}")
    assert {str(path.relative_to(root)) for path in found} == names
    colons = [root / "sub/1:2"] if pattern == "sub/*" else []
    assert with_colon(f"{escaped(str(root))}/{pattern}") == colons
