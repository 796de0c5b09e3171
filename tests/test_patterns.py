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
        ("{a,{x,y}}.{csv,{j,}sonl}", {"a.jsonl", "x.csv"}),
        (r"{a\,b,x}.csv", {"x.csv"}),
        ("{a.jsonl", set()),
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


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*", ["12:30.csv", "1:2"]),
        ("*.jsonl", ["12:30.csv", "1:2"]),
        ("*/*.jsonl", ["1:2", "sub/3:4", "sub/deep:er"]),
        ("s*/a.jsonl", ["1:2"]),
        ("s*/*/*", ["1:2", "sub/deep:er"]),
        ("sub/*", ["sub/3:4", "sub/deep:er"]),
        ("sub/a.jsonl", []),
        ("sub/{a,b}.jsonl", ["sub/3:4", "sub/deep:er"]),
        ("{sub,none}/a.jsonl", ["1:2"]),
        ("{sub/a.jsonl,other/*}", []),
        ("{sub/{a,b}.jsonl,other/*}", ["sub/3:4", "sub/deep:er"]),
        ("12:30.csv", ["12:30.csv"]),
        ("1:2/*", ["1:2"]),
    ],
)
def test_names_with_a_colon_that_hadoop_fails_on(tmp_path: Path, pattern: str, names: list[str]) -> None:
    """As `globStatus` of Hadoop 3.4 does: it lists a folder where a part of the pattern has wildcards."""
    for name in ("12:30.csv", "1:2/a.jsonl", "sub/3:4", "sub/a.jsonl", "sub/deep:er/a.jsonl", "other/a.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert with_colon(f"{tmp_path}/{pattern}") == sorted(tmp_path / name for name in names)
