"""SQL functions before there is a Spark: how they are read and found in queries, and the files that have them."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from runner.compile.compiled import CompiledNode
from runner.compile.library import Library
from runner.compile.query import compile_format
from runner.contract import MACRO_GLOBALS
from runner.errors import RunnerError
from runner.project.sql_functions import Argument, SqlFunction, printed_functions, read_functions
from runner.render import Renderer
from runner.spec.formats import FormatFolders
from runner.sql_text import names_called
from tests import snapshots
from tests.lambdas import refused
from tests.pages import ROOT

MADE = re.compile(r"^create or replace temporary function (\S+?)\(", re.MULTILINE)


def function(name: str, body: str, kind: str = "string") -> str:
    return f"create function {name}(a {kind} comment 'an a') returns {kind} comment 'what {name} does' return {body};\n"


def library(folder: Path, **files: str) -> Library:
    """The built-in functions, and those of files in a folder of macros."""
    for name, text in files.items():
        path = folder / "functions" / f"{name}.sql"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return Library(Renderer([folder, ROOT / "macros"], MACRO_GLOBALS))


def names(functions: tuple[SqlFunction, ...]) -> list[str]:
    return [one.name for one in functions]


# --- reading


def test_a_function_as_data() -> None:
    text = """
-- Counts; 'with a quote
CREATE FUNCTION counted(
  texts array<struct<a: string comment 'x, y', b: decimal(38, 0)>> comment 'it\\'s a list; of (texts',
  times int comment "how often")
returns map<string,
            array<int>>
comment 'How often each, and where.'
return map(upper('f(x); --'), array(size(texts) * times)); -- the end
"""
    (read,) = read_functions(text, Path("f.sql"))
    assert read == SqlFunction(
        name="counted",
        arguments=(
            Argument("texts", "array<struct<a: string comment 'x, y', b: decimal(38, 0)>>", "it's a list; of (texts"),
            Argument("times", "int", "how often"),
        ),
        returns="map<string, array<int>>",
        comment="How often each, and where.",
        text=text.partition("CREATE FUNCTION ")[2].partition("; -- the end")[0],
        calls=frozenset({"map", "upper", "array", "size"}),
        where=read.where,
    )
    assert str(read.where) == "f.sql:3"


def test_a_file_without_functions() -> None:
    assert read_functions("-- nothing yet\n", Path("f.sql")) == []


def test_what_a_macro_prints_for_one_source() -> None:
    text = function("`1st_canonical`", "lower(a)") + function("`1st_key`", "`1st_canonical`(a)")
    first, second = printed_functions(text, "canonical")
    assert (first.name, second.name) == ("1st_canonical", "1st_key")
    assert first.text.startswith("`1st_canonical`(a string")
    assert not first.in_library


@pytest.mark.parametrize(
    ("sql", "called"),
    [
        ("select f(a), G (b), h\n  (c)", {"f", "g", "h"}),
        ("select 'f(a)', \"g(b)\", `h`(c), `i(d)`", set()),
        ("-- f(a)\nselect 1 /* g(b) */, h(c)", {"h"}),
        ("/* outer /* inner */ f(a) */ g(b)", {"g"}),
        ("'it\\'s f(a)' || g(b) || 'it''s h(c)'", {"g"}),
        ("r'\\' || f(a) || R\"\\\" || g(b)", {"f", "g"}),
        ("s.f(a), s.`g`(b), 1.h", set()),
        ("array_f(a), f1(b), f_(c), 2f(d)", {"array_f", "f1", "f_"}),
        ("f(g(h(1)))", {"f", "g", "h"}),
        ("f", set()),
        ("don't f(a)", {"f"}),
    ],
)
def test_calls_are_found(sql: str, called: set[str]) -> None:
    assert names_called(sql) == called


def test_calls_are_found_in_no_time() -> None:
    sql = (ROOT / "tests/compiled/canal_to_changelog.sql").read_text() * 5
    began = time.perf_counter()
    names_called(sql)
    assert time.perf_counter() - began < 0.2, f"{len(sql)} characters"


# --- which functions a query needs


def test_each_function_comes_once_and_after_those_that_it_calls(tmp_path: Path) -> None:
    found = library(
        tmp_path,
        one=function("a", "b(c(a))") + function("c", "d(a)"),
        two=function("d", "a") + function("b", "concat(d(a), c(a))") + function("e", "a(a)"),
    )
    assert names(found.called_by("select A(x), b(y) from e")) == ["d", "c", "b", "a"]
    assert found.called_by("select upper(x)") == ()


def test_functions_of_one_source_come_with_what_they_call(tmp_path: Path) -> None:
    found = library(tmp_path, one=function("a", "b(a)") + function("b", "a") + function("c", "a") + function("d", "a"))
    own = printed_functions(function("`x y`", "a(a)") + function("z", "concat(`x y`(a), c(a))"), "canonical")
    assert names(found.called_by("select z(v), d(v)", own)) == ["b", "a", "x y", "c", "z", "d"]
    taken = printed_functions(function("B", "a"), "canonical")
    with pytest.raises(RunnerError, match='the name "B" is taken'):
        found.called_by("select 1", taken)


def test_a_function_that_calls_itself_is_a_circle(tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match="in a circle: a -> a"):
        library(tmp_path, one=function("a", "a(a)")).called_by("a(1)")


def test_built_in_functions_are_named_as_they_are_found() -> None:
    """Their names are found in files that were not rendered."""
    found = Library(Renderer([ROOT / "macros"], MACRO_GLOBALS))
    everything = found.all()
    assert found.built_in is not None
    assert sorted(found.built_in) == sorted(names(everything))
    assert {"changed_columns", "columns_of"} <= set(found.built_in)


# --- in a project


MODELS = {
    "macros/shared.sql": "{% macro longer(text) %}concat({{ text }}, 'x'){% endmacro %}",
    "macros/functions/own.sql": (
        "{% for n in (1, 2) %}\n"
        + function("own_{{ n }}", "{{ longer('a') }} || {{ 'it' | sql_text }}")
        + "{% endfor %}"
    ),
    "macros/functions/deep/more.sql": function("more", "java_bytes(own_map(a))", "map<string,string>"),
    "macros/functions/deep/maps.sql": function("own_map", "columns_of(a, null, array('a'))", "map<string,string>"),
    "models/m.sql": "select own_2('a') as a, more(map('a', '[1]')) as b",
    "models/n.sql": "select changed_columns(map(), map(), null) as c, 'own_1(a)' as d, 1 as e -- own_1(a)",
}


def test_functions_sql_has_what_models_call(project, runner) -> None:
    root = project(MODELS)
    assert runner("compile", "-s", "m n").code == 0
    text = (root / "target/compiled/shop/functions.sql").read_text()
    assert MADE.findall(text) == ["columns_of", "own_map", "more", "own_2", "changed_columns"]
    assert "return concat(a, 'x') || 'it';\n" in text
    head = text.partition("create ")[0]
    assert "--   java_bytes(texts map<string,string>) returns map<string,string>\n" in head
    assert "--     in runner.functions.udfs\n" in head
    assert runner("compile", "-s", "n").code == 0
    text = (root / "target/compiled/shop/functions.sql").read_text()
    assert MADE.findall(text) == ["changed_columns"] and "java_bytes" not in text
    (root / "models/n.sql").write_text("select 1 as a")
    assert runner("compile", "-s", "n").code == 0
    assert not (root / "target/compiled/shop/functions.sql").exists()


def test_data_tests_and_increments_call_functions(project, runner) -> None:
    root = project(
        {
            **MODELS,
            "models/i.sql": (
                "{{ config(materialized='incremental') }} "
                "select 'a' as a {% if is_incremental() %} where own_1('a') = 'b' {% endif %}"
            ),
            "models/i.yml": "models: [{name: i, data_tests: [expression_is_true: {expression: own_2(a) = 'b'}]}]",
        }
    )
    assert runner("compile", "-s", "i").code == 0
    assert MADE.findall((root / "target/compiled/shop/functions.sql").read_text()) == ["own_1"]
    assert runner("compile", "-s", "expression_is_true_i").code == 0
    assert MADE.findall((root / "target/compiled/shop/functions.sql").read_text()) == ["own_2"]


def test_runnable_is_settings_functions_and_model(project, runner) -> None:
    project(MODELS)
    plain = runner("compile", "-s", "m", "-q").out
    assert plain == MODELS["models/m.sql"] + "\n"
    text = runner("compile", "-s", "m", "--runnable").out
    assert text.startswith("set spark.sql.ansi.enabled = true;\n") and text.endswith(f";\n\n{plain}")
    assert MADE.findall(text) == ["columns_of", "own_map", "more", "own_2"]
    assert "-- Calls functions in Python: java_bytes.\n" in text and 'register(spark, "m")' in text


def test_functions_are_no_macros(project, runner) -> None:
    project({"macros/functions/f.sql": "{% macro mine() %}1{% endmacro %}", "models/m.sql": "select {{ mine() }}"})
    assert 'error[template]: "mine" is not defined' in runner("compile").err


def test_mistakes_are_at_the_line_of_the_template(project, runner) -> None:
    """A macro prints several lines, so that lines of the rendered file are others."""
    project(
        {
            "macros/lines.sql": "{% macro lines() %}\n--\n--\n--\n{% endmacro %}",
            "macros/functions/f.sql": f"{{{{ lines() }}}}\n{function('f', 'a')}create function g()\nreturn 1;\n",
        }
    )
    ran = runner("compile")
    assert 'error[function-syntax]: expected "returns", not "return"\n  --> macros/functions/f.sql:4\n' in ran.err


def test_several_mistakes_are_told_together(project, runner) -> None:
    taken = function("changed_columns", "a")
    project({"macros/functions/f.sql": "select 1;", "macros/functions/g.sql": taken, "models/m.sql": "select 1 as a"})
    assert re.findall(r"error\[(.*)\]", runner("compile").err) == ["function-syntax", "function-taken"]


def test_check_reads_the_tests_of_functions(project, runner) -> None:
    project({"macros/functions/f.yml": "functions:\n  columns_of: [{given: [a], expect: b}]"})
    assert "error[unit-test-given]" in runner("check").err


# --- no argument has a lambda, which Spark 4.2 refuses (docs/sql.md, "Limits of Spark")


def refused_in(nodes: dict[str, CompiledNode]) -> dict[str, list[str]]:
    """Node or function -> the functions that it calls with lambdas."""
    return {
        f"{name}: {called}": found
        for name, node in nodes.items()
        for called, text in [("", node.sql), *((one.name, one.text) for one in node.sql_functions)]
        if (found := refused(text, node.sql_functions))
    }


def test_no_argument_has_a_lambda_in_built_in_functions() -> None:
    functions = Library(Renderer([ROOT / "macros"], MACRO_GLOBALS)).all()
    assert {one.name: found for one in functions if (found := refused(one.text, functions))} == {}


def test_no_argument_has_a_lambda_in_models_and_mirrors() -> None:
    nodes = snapshots.nodes()
    assert all(nodes[name].sql_functions for name in ("canal_to_changelog", "mirror_of_orders"))
    assert refused_in(nodes) == {}


def test_no_argument_has_a_lambda_where_local_times_have_a_zone() -> None:
    renderer, formats = Renderer([ROOT / "macros"], MACRO_GLOBALS), FormatFolders((ROOT / "formats",))
    # This one is only what another format is extended with.
    names = sorted({path.stem for path in (ROOT / "formats").glob("*.yml")} - {"oms_before_3_3"})
    compiled = {name: compile_format(renderer.call, formats.load(name), name, "Europe/Berlin") for name in names}
    built_in = Library(renderer)
    assert refused_in({name: built_in.complete(node) for name, node in compiled.items()}) == {}


# --- the built-in functions and their page


def test_the_page_of_functions_is_current() -> None:
    from tools import sql_functions

    page = sql_functions.PAGE.read_text()
    assert sql_functions.current(page) == page, "make snapshots"
    for one in Library(Renderer([ROOT / "macros"], MACRO_GLOBALS)).all():
        assert f"**`{one.name}(" in page


def test_built_in_functions_are_tested_with_nulls() -> None:
    """Arguments of messages may be missing."""
    from runner.yaml_text import read_yaml

    for one in Library(Renderer([ROOT / "macros"], MACRO_GLOBALS)).all():
        cases = read_yaml(one.where.path.with_suffix(".yml"))["functions"][one.name].value
        for number, argument in enumerate(one.arguments):
            assert any(case["given"][number] is None for case in cases), f"{one.name}: {argument.name} is never null"


def test_python_functions_have_signatures() -> None:
    from runner.functions import signatures, udfs

    assert {name: one.returns for name, one in signatures.PYTHON_FUNCTIONS.items()} == {
        name: kind for name, (_, kind) in udfs.FUNCTIONS.items()
    }
