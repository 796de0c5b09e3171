"""Errors of Spark name the line and column of the person's own file, and show what stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner.contract import MACRO_GLOBALS
from runner.errors import Problems, Where, excerpt
from runner.project.many_mirrors import Mirrors
from runner.project.parse import read_templates
from runner.project.project import read_project
from runner.render import Renderer, TracingRenderer
from runner.secrets import Secrets
from tests.pages import ROOT

MACROS = """\
{% macro total(column) %}
  sum(
    {{ column }} + intervl
  )
{% endmacro %}
"""
MODELS = {
    # Lines that the template has and the SQL has not, and the other way round.
    "looped": """\
{{ config(materialized='table') }}
{%- set names = ['a', 'b'] %}
select
  id,
  {% for one in names -%}
  id + 1 as {{ one }},
  {% endfor -%}
  amout
from range(3)
""",
    "summed": "select id,\n  {{ total('id') }} as t\nfrom range(3)\n",
    # What Spark only finds when a table is made that reads the view.
    "numbers": "select\n\tcast(concat('a', id) as int) as number\nfrom range(3)\n",
    "counted": "{{ config(materialized='table') }}\nselect number,\n  1 as one\nfrom {{ ref('numbers') }}\n",
    "grown": """\
{{ config(materialized='incremental') }}
select
{% if is_incremental() %}
  id / (id - id) as half
{% else %}
  id / 2 as half
{% endif %}
from range(3)
""",
    "cut": "select id,\nid from range(3) where (\n",
}
PLACES = {
    "looped": ("models/looped.sql:8:3", "8 |   amout", "^^^^^"),
    "summed": ("macros/sums.sql:3:20", "3 |     {{ column }} + intervl", "^^^^^^^"),
    "counted": ("models/numbers.sql:2:2", "2 | \tcast(concat('a', id) as int) as number", "^" * 28),
    "cut": ("models/cut.sql:2:24", "2 | id from range(3) where (", "^"),
}


def shown(output: str) -> dict[str, tuple[str, ...]]:
    """Model -> the place of its error, the line that is shown, and the marks below it."""
    found = re.findall(r"ERROR \w+ model (\w+) .*\n.*\n +--> (\S+)\n +\|\n +(\d+ \|.*)\n +\|\s+(\^+)(?=\n)", output)
    return {model: tuple(place) for model, *place in found}


@pytest.mark.usefixtures("spark")
def test_errors_of_spark_are_shown_in_the_file_that_was_written(runner, project) -> None:
    project(
        {
            "project.yml": "name: places\n",
            "macros/sums.sql": MACROS,
            **{f"models/{name}.sql": text for name, text in MODELS.items()},
        }
    )
    ran = runner("run")
    assert ran.code == 1 and shown(ran.err) == PLACES, ran.err
    assert shown(runner("run", "-s", "grown").err) == {
        "grown": ("models/grown.sql:4:3", "4 |   id / (id - id) as half", "^" * 14)
    }
    ran = runner("show", "--inline", "select\n nmber from {{ ref('numbers') }}")
    assert ran.code == 1 and ran.err.endswith("  --> --inline:2:2\n   |\n 2 |  nmber from `numbers`\n   |  ^^^^^\n"), (
        ran.err
    )


# --- without Spark


def tracing(folder: Path, *marked: Path) -> TracingRenderer:
    is_marked = lambda path: any(path.is_relative_to(one) for one in marked or (folder,))  # noqa: E731
    return TracingRenderer([folder / "macros", ROOT / "macros"], MACRO_GLOBALS, is_marked)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_each_character_comes_from_where_it_was_written(tmp_path: Path, ends: str) -> None:
    """Letters that stand in the template once must lead there, wherever they come out."""
    (tmp_path / "macros").mkdir()
    (tmp_path / "macros" / "own.sql").write_text("{% macro own(b) -%}\n  J{{ b }}K\n{%- endmacro %}", newline="")
    text = (
        "{# a comment\n over lines #}\n{%- set x = 'é' -%}\n  A {{ x }} B\n{% raw %}C{{ {% endraw %}\n"
        "{% for _ in [1, 2] %}\n\n  D {%- if loop.first %} E\n{% else +%} F{% endif %}\n{% endfor %}{{ own('x') }} G\n"
    )
    path = tmp_path / "m.sql"
    path.write_text(text, newline=ends)
    trace = tracing(tmp_path).trace(path, {})
    rendered = Renderer([tmp_path / "macros", ROOT / "macros"], MACRO_GLOBALS).render(path, {})
    assert trace.text == rendered.strip()
    for number, line in enumerate(trace.text.split("\n"), 1):
        for column, letter in enumerate(line, 1):
            if letter in "ABCDEFGJK":
                where = trace.place(number, column)
                assert where and where.path.read_text().split("\n")[where.line - 1][where.column - 1] == letter
    assert {letter for letter in trace.text if letter.isupper()} == set("ABCDEFGJK")


def test_what_an_expression_prints_comes_from_its_braces(tmp_path: Path) -> None:
    (tmp_path / "macros").mkdir()
    path = tmp_path / "m.sql"
    path.write_text("select\n  a, {{ 'long' ~ '\n' ~ 'text' }} b")
    trace = tracing(tmp_path).trace(path, {})
    assert trace.text == "select\n  a, long\ntext b"
    assert [trace.place(2, 8), trace.place(3, 4)] == [Where(path, 2, 6)] * 2
    # Behind it, the text goes on where the braces end.
    assert trace.place(3, 5) == Where(path, 3, 14) and trace.place(9, 1) is None


def test_macros_whose_text_is_compared_print_no_marks(project) -> None:
    root = project(
        {
            "macros/own.sql": "{% macro side() %}left{% endmacro %}",
            "models/m.sql": "select\n{% if side() == 'left' %}\n  amout\n{% endif %}\nfrom t",
        }
    )
    templates = read_templates(
        read_project(root, None, {}, None, Secrets()), [], Mirrors((), (), frozenset(), ()), Problems()
    )
    path = root / "models/m.sql"
    trace = templates.trace(path, templates.sql(path))
    assert trace and trace.place(3, 3) == Where(path, 3, 3)


def test_a_long_line_is_shown_around_its_fault() -> None:
    lines = excerpt(Where(Path("m.sql"), 1, 301), "a" * 300 + "bad" + "c" * 300, "bad").split("\n")
    assert [len(line) <= 170 for line in lines] == [True] * 4
    assert lines[2].index("bad") == lines[3].index("^^^") and lines[3].endswith("^^^")
