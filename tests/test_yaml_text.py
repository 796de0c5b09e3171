"""YAML without guesses: every scalar is text, and everything has its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.errors import RunnerError, RunnerErrors
from runner.yaml_text import Yaml, read_yaml


def read(tmp_path: Path, text: str | bytes) -> Yaml:
    path = tmp_path / "a.yml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_yaml(path)


TEXTS = [
    "on",
    "off",
    "yes",
    "NO",
    "True",
    "false",
    "+10:00",
    "12:30:45",
    "1e3",
    "0x10",
    "0o7",
    "010",
    "1_000",
    "-1",
    "1.50",
    ".inf",
    ".nan",
    "2024-01-01",
    "2024-01-01T00:00:00Z",
    "=",
    "Null",
    "NULL",
    "None",
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_scalar_is_its_text(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, f"a: {text}\nb: [{text}]\n").value == {"a": text, "b": [text]}


@pytest.mark.parametrize("text", TEXTS)
def test_every_key_is_its_text(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, f"{text}: a\n").value == {text: "a"}


@pytest.mark.parametrize("text", ["", "~", "null"])
def test_a_plain_null_is_none(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, f"a: {text}\nb: [{text or '~'}, x]\n").value == {"a": None, "b": [None, "x"]}


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("'null'", "null"),
        ('"null"', "null"),
        ("'~'", "~"),
        ("''", ""),
        ('""', ""),
        ("|\n  null\n", "null\n"),
        (">-\n  null\n", "null"),
    ],
)
def test_a_quoted_null_is_text(tmp_path: Path, written: str, text: str) -> None:
    assert read(tmp_path, f"a: {written}\n").value == {"a": text}


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_says_nothing(tmp_path: Path, text: str) -> None:
    assert not read(tmp_path, text).value


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbfa: b\n").value == {"a": "b"}


def test_places(tmp_path: Path) -> None:
    yaml = read(tmp_path, "a: 1\nlist:\n  - x\n  - {k: [v, w]}\n\n'odd.key':   2\n")

    def place(one: Yaml) -> tuple[int | None, int | None]:
        return one.where().line, one.where().column

    assert place(yaml) == (1, 1)
    assert place(yaml["list"]) == (2, 1)
    assert [place(one) for one in yaml["list"].elements()] == [(3, 5), (4, 5)]
    assert place(yaml["list"][1]["k"]) == (4, 6)
    assert place(yaml["list"][1]["k"][1]) == (4, 13)
    assert place(yaml["odd.key"]) == (6, 1)
    assert yaml["list"][1]["k"][1].name() == '"list[1].k[1]"' and yaml.name() == "the file"


def test_an_alias_is_what_it_names(tmp_path: Path) -> None:
    assert read(tmp_path, "a: &x [1, 2]\nb: *x\n").value == {"a": ["1", "2"], "b": ["1", "2"]}


@pytest.mark.parametrize(
    ("method", "good", "bad"),
    [("text", "a: x", "a: [x]"), ("mapping", "a: {b: c}", "a: [x]"), ("list", "a: [x]", "a: x")],
)
def test_what_a_value_must_be(tmp_path: Path, method: str, good: str, bad: str) -> None:
    getattr(read(tmp_path, good)["a"], method)()
    with pytest.raises(RunnerError) as caught:
        getattr(read(tmp_path, bad)["a"], method)()
    assert caught.value.code == "yaml-type" and str(caught.value.where).endswith("a.yml:1:1")


def test_only_names_every_key_that_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(RunnerErrors) as caught:
        read(tmp_path, "name: a\nnmae: b\nzone: c\nzzz: d\n").only(["name", "zone"])
    assert [(e.message, e.hint) for e in caught.value.errors] == [
        ('unknown key "nmae" in the file', 'did you mean "name"?'),
        ('unknown key "zzz" in the file', "known: name, zone"),
    ]
