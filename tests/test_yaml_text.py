"""YAML without guesses: every scalar is text, and everything has its place."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml as pyyaml

import runner.yaml_text
from runner.errors import RunnerError, RunnerErrors, errors_in
from runner.run.workspace import ProjectArguments, Workspace
from runner.spec.formats import FormatFolders
from runner.yaml_text import DEEPEST, LARGEST, MOST_REPEATED, Yaml, read_yaml


def read(tmp_path: Path, text: str | bytes) -> Yaml:
    path = tmp_path / "a.yml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_yaml(path)


TEXTS = [
    *("on", "off", "yes", "NO", "True", "false", "+10:00", "12:30:45", "1e3", "0x10", "0o7", "010", "1_000", "-1"),
    *("1.50", ".inf", ".nan", "2024-01-01", "2024-01-01T00:00:00Z", "=", "Null", "NULL", "None"),
]


def test_every_scalar_is_its_text(tmp_path: Path) -> None:
    assert read(tmp_path, "".join(f"- {text}\n- [{text}]\n" for text in TEXTS)).value == [
        one for text in TEXTS for one in (text, [text])
    ]


def test_every_key_is_its_text(tmp_path: Path) -> None:
    assert read(tmp_path, "".join(f"{text}: a\n" for text in TEXTS)).value == dict.fromkeys(TEXTS, "a")


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


PLACES = """
"a\\tb": {c: [[], {}, [x, {y: z, '': ~}]], d: {e: f}}
list:
- - 1
  - g: 2
    h: [3,
        {i: 4}, 5]
- # nothing
- |
  text
-   数: {j: k}
'~': null
"""


def test_places_of_everything(tmp_path: Path, either_parser: None) -> None:
    """As another reader of YAML has them; the value of a key is where its key is."""

    def expected(node: pyyaml.Node, to: tuple[str | int, ...], at: pyyaml.Node) -> dict[tuple[str | int, ...], str]:
        places = {to: f"{at.start_mark.line + 1}:{at.start_mark.column + 1}"}
        if isinstance(node, pyyaml.MappingNode):
            for key, value in node.value:
                places |= expected(value, (*to, key.value), key)
        elif isinstance(node, pyyaml.SequenceNode):
            for number, element in enumerate(node.value):
                places |= expected(element, (*to, number), element)
        return places

    root = pyyaml.compose(PLACES, Loader=pyyaml.BaseLoader)
    read_places = read(tmp_path, PLACES).places
    found = {steps: str(where).rpartition("a.yml:")[2] for steps, where in read_places.items()}
    assert list(found.items()) == list(expected(root, (), root).items()) and len(read_places) == len(found) == 28
    assert all(steps not in read_places for steps in [("b",), ("list", 9), ("list", "1"), ("~", 0), ("~", "a")])


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


# --- hostile and odd files: each is read, or is an error at its place, in no time


LAUGHS = "a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
LONG = "x" * 1_000_000


@pytest.fixture(params=["libyaml", "python"])
def either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """libyaml, and the parser that is used where it is missing."""
    if request.param == "python":
        monkeypatch.setattr(runner.yaml_text, "LOADER", pyyaml.BaseLoader)


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        pytest.param(LAUGHS, "yaml-alias", "7:10", id="laughs"),
        pytest.param(f"a: &a {LONG}\nb: [{'*a, ' * 11}]", "yaml-alias", "2:41", id="long-text-repeated"),
        pytest.param("a: &a {b: *a}", "yaml-alias", "1:11", id="alias-inside"),
        pytest.param("a: &a [[*a]]", "yaml-alias", "1:9", id="alias-deeper-inside"),
        pytest.param("a: *b", "yaml-syntax", "1:4", id="no-anchor"),
        pytest.param("a: " + "[" * 100_000, "yaml-depth", "1:103", id="lists"),
        pytest.param("{a: " * 100_000, "yaml-depth", "1:401", id="mappings"),
        pytest.param("- " * 100_000, "yaml-depth", "1:201", id="blocks"),
        pytest.param("? " * 100_000, "yaml-type", "1:3", id="keys"),
        pytest.param("[]: a", "yaml-type", "1:1", id="list-as-key"),
        pytest.param("a: &a [b]\n*a : c", "yaml-type", "2:1", id="alias-of-list-as-key"),
        pytest.param("a: &b c\n? *b\n: x\nc: y", "duplicate-key", "4:1", id="alias-as-key"),
        pytest.param("a: !!python/object/apply:os.system [id]", "yaml-unsupported", "1:4", id="object"),
        pytest.param("a: !!binary aGk=", "yaml-unsupported", "1:4", id="binary"),
        pytest.param("!x a: b", "yaml-unsupported", "1:1", id="tag-of-key"),
        pytest.param("a: !!str 1", "yaml-unsupported", "1:4", id="str"),
        pytest.param("a: &a {b: c}\nd:\n  <<: *a", "yaml-unsupported", "3:3", id="merge-key"),
        pytest.param("a:\n\t- b", "yaml-syntax", "2:1", id="tab"),
        pytest.param("a: b\nc: \x00", "yaml-syntax", "2", id="nul"),
        pytest.param("a: b\nc: \x1b[2J", "yaml-syntax", "2", id="escape"),
        pytest.param("a: b\n...\n---\nc: d", "yaml-syntax", "3:1", id="two-documents"),
        pytest.param("%YAML 9.0\n---\na: b", "yaml-syntax", "1:1", id="version"),
    ],
)
def test_what_cannot_be_read_is_an_error_at_its_place(
    tmp_path: Path, text: str, code: str, place: str, either_parser: None
) -> None:
    started = time.process_time()
    with pytest.raises(RunnerError) as caught:
        read(tmp_path, text)
    assert (caught.value.code, str(caught.value.where).rpartition("a.yml:")[2]) == (code, place)
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(f"a: {'1' * 100_000}", {"a": "1" * 100_000}, id="digits"),
        pytest.param("a: 2024-99-99\n2024-99-99: b", {"a": "2024-99-99", "2024-99-99": "b"}, id="date"),
        pytest.param("? .nan\n: b\n.NaN: c", {".nan": "b", ".NaN": "c"}, id="nan"),
        pytest.param("~: b\nnull: c", {"~": "b", "null": "c"}, id="null-key"),
        pytest.param("'<<': b", {"<<": "b"}, id="quoted-merge-key"),
        pytest.param("a: '\tb'", {"a": "\tb"}, id="tab"),
        pytest.param("\ufeffa: b\r\nc: d\r\n", {"a": "b", "c": "d"}, id="bom-and-crlf"),
        pytest.param('a: "\\0\\U0001F600"', {"a": "\0\U0001f600"}, id="escapes"),
        pytest.param("a: &x b\nc: &x d\ne: *x", {"a": "b", "c": "d", "e": "d"}, id="anchor-used-again"),
        pytest.param("a: &x b\n*x : c", {"a": "b", "b": "c"}, id="alias-as-key"),
        pytest.param(
            "a: &x\nb: *x\nc: &y ''\nd: *y", {"a": None, "b": None, "c": "", "d": ""}, id="aliases-of-nothing"
        ),
    ],
)
def test_odd_files_are_read(tmp_path: Path, text: str, value: object, either_parser: None) -> None:
    assert read(tmp_path, text).value == value


def test_half_a_surrogate_pair_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match="invalid Unicode character escape code"):
        read(tmp_path, 'a: "\\ud800"')


def test_depth_up_to_the_bound(tmp_path: Path, either_parser: None) -> None:
    value = read(tmp_path, "[" * DEEPEST + "]" * DEEPEST).value
    for _ in range(DEEPEST - 1):
        (value,) = value
    assert value == []


def test_aliases_up_to_the_bound(tmp_path: Path) -> None:
    values = read(tmp_path, f"a: &a {'x' * (MOST_REPEATED // 1000 - 10)}\nb: [{', '.join(['*a'] * 1000)}]").value["b"]
    assert len(values) == 1000 and len({id(value) for value in values}) == 1


def test_what_an_alias_repeats_is_at_the_place_of_the_alias(tmp_path: Path) -> None:
    yaml = read(tmp_path, "a: &x {b: [c]}\nd:\n  - *x\ne: *x\n")
    assert yaml["d"].value == [{"b": ["c"]}]
    places = [one.where().line for one in (yaml["a"]["b"], yaml["d"][0]["b"][0], yaml["e"]["b"])]
    assert places == [1, 3, 4]


def test_a_file_that_is_too_large_is_not_read(project, runner) -> None:
    with (project() / "project.yml").open("wb") as file:
        file.truncate(LARGEST + 1)
    ran = runner("ls")
    assert ran.code == 2 and ran.err.splitlines()[:2] == [
        "error[yaml-size]: too large: 64000001 bytes, and a file of YAML has at most 64000000",
        "  --> project.yml",
    ]


def test_a_large_file_is_read_in_little_time_and_memory(tmp_path: Path) -> None:
    """In a process of its own, with little memory. The times are for a slow machine."""
    path = tmp_path / "a.yml"
    row = "  - op: insert\n    key: {id: '%d'}\n    after: {id: '%d', name: \"some name %d\", note: null}\n"
    path.write_text("rows:\n" + "".join(row % (n, n, n) for n in range(10_000)))
    code = (
        "import resource, sys, time; from pathlib import Path; from runner.yaml_text import read_yaml\n"
        "resource.setrlimit(resource.RLIMIT_AS, (150_000_000, 150_000_000)); started = time.process_time()\n"
        "read = read_yaml(Path(sys.argv[1])); print(len(read.value['rows']), time.process_time() - started)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    rows, seconds = ran.stdout.split()
    assert int(rows) == 10_000 and float(seconds) < 5


def test_no_objects_are_made_but_the_values(tmp_path: Path) -> None:
    """What Python has to look through again and again, while a large file is read, would take most of the time."""
    text = "rows:\n" + "  - {name: a, columns: [{name: b}, {name: c, tests: [d, e]}]}\n" * 1_000
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        yaml = read(tmp_path, text)
        made = len(gc.get_objects()) - before
    finally:
        gc.enable()
    assert len(yaml["rows"].value) == 1_000 and made < 5 * 1_000 + 500


# --- wherever YAML is read


@pytest.mark.parametrize(
    "text", [LAUGHS, "[" * 100_000, "{a: " * 25_000, "a: \udcff", "{a: " + "1" * 100_000 + "b: *c"]
)
def test_hostile_yaml_on_the_command_line(project, runner, text: str) -> None:
    project()
    ran = runner("ls", "--vars", text)
    assert ran.code == 2 and ran.err.startswith("error[vars]: cannot read the variables: ") and len(ran.err) < 5000


def test_hostile_yaml_in_every_kind_of_file(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FormatFolders, "names", lambda folders: ["f", "g"])
    hostile = ["formats/cases/canal/a.rows.yml", "formats/f.yml", "formats/types/mine.yml", "macros/functions/f.yml"]
    hostile += ["models/m.yml", "seeds/s.yml", "selectors.yml"]
    good = {
        "formats/g.yml": "about: x\nop:\n  by: type\n  cases: {I: insert}\nafter: data\ntypes: {at: t, table: mine}\n",
        "formats/cases/canal/a.messages.jsonl": "{}",
        "models/m.sql": "select 1",
        "macros/functions/f.sql": "create function f(a string comment 'a') returns string comment 'c' return a;",
    }
    project({**good, **dict.fromkeys(hostile, LAUGHS)})
    ran = runner("check")
    assert ran.code == 2 and "Traceback" not in ran.err
    assert re.findall(r"^error\[yaml-alias\].*\n  --> (.*):7:10$", ran.err, re.MULTILINE) == hostile


@pytest.mark.parametrize(
    "where",
    [
        "sources: [{name: a, format: canal, kafka: {servers: s, topics: t, batch: %s}}]",
        "sources: [{name: a, format: canal, kafka: {servers: s, topics: t, starting: {t: {0: %s}}}}]",
        "sources: [{name: a, format: canal, kafka: {servers: s, topics: t, starting: {t: {%s: 0}}}}]",
        "sources: [{name: a, format: %s, files: x}]",
        "sources: [{name: a, format: {extends: %s}, files: x}]",
        "sources: [{name: a, format: {extends: canal, types: {at: t, table: %s}}, files: x}]",
        "sources: [{name: a, format: {extends: canal, message: {skip_bytes: %s}}, files: x}]",
        "sources: [{name: a, format: {extends: canal, message: {encoding: avro, schema: %s}}, files: x}]",
        "sources: [{name: a, format: canal, zone: %s, files: x}]",
        "targets: {local: {jars: %s}}",
        "targets: {local: {storage: %s}}",
        "target: %s",
        "models: {%s: {+tags: a}}",
    ],
)
def test_odd_values_are_mistakes_wherever_they_stand(project, where: str) -> None:
    for value in ("1" * 100_000, "²", "2024-99-99", "../../x", "/etc/x", '"\\0"', "x" * 100_000):
        project({"project.yml": where % value})
        with pytest.raises((RunnerError, RunnerErrors, OSError)) as caught:
            Workspace(ProjectArguments())
        told = [f"{one.message}{one.where}{one.hint}" for one in errors_in(caught.value)]
        assert told and len("".join(told)) < 5000, value[:20]


def test_formats_that_extend_each_other_without_end(project, runner) -> None:
    """Thirty small files, each of which extends the next two times: a thousand million specs."""
    files = {f"formats/f{n}.yml": f"extends: [f{n + 1}, f{n + 1}]" for n in range(30)}
    project({**files, "formats/f30.yml": "about: x"})
    ran = runner("formats", "show", "f0")
    assert ran.code == 2 and ran.err.startswith(
        "error[format-cycle]: formats that extend others read more than 200 files"
    )
