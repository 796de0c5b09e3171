"""Templates of other people: they compute texts, and reach nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner.errors import RunnerError, Where
from runner.project.variables import Filler
from runner.render import Renderer, sql_text
from runner.secrets import Secrets

ROOT = Path(__file__).parent.parent
WORLD = [
    # What templates are given
    "{{ ref.__globals__ }}",
    "{{ ref.__func__.__globals__ }}",
    "{{ ref.__self__.renderer }}",
    '{{ config.__init__.__globals__.os.popen("touch ran").read() }}',
    "{{ env_var.__globals__.os.environ }}",
    "{{ name.__globals__ }}",
    "{{ target.__class__.__init__.__globals__ }}",
    "{{ target.__dict__ }}",
    '{{ target["__class__"] }}',
    '{{ target | attr("__class__") }}',
    '{{ [target] | map(attribute="__class__") | first }}',
    '{{ "{0.__class__}".format(target) }}',
    '{{ "{0.__class__}".format_map }}{{ "{a.__class__}".format_map({"a": target}) }}',
    "{{ sources }}{{ self._TemplateReference__context }}",
    "{{ header.__init__.__globals__ }}",
    "{{ macro.__self__.environment }}",
    '{{ macro("header")._environment }}',
    "{{ is_incremental.__closure__ }}",
    '{% do contract.update({"kind": "x"}) %}',
    "{% do contract.clear() %}",
    '{% do sql_settings.pop("spark.sql.ansi.enabled") %}',
    "{% set contract.kind = 1 %}",
    # What Jinja gives
    '{{ cycler.__init__.__globals__.os.popen("touch ran").read() }}',
    "{{ joiner }}",
    "{{ lipsum.__globals__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ range.__globals__ }}",
    "{{ dict.mro() }}",
    "{{ dict.__subclasses__() }}",
    "{% for x in [1] %}{{ loop._iterator }}{{ loop.__init__.__globals__ }}{% endfor %}",
    "{{ self.__init__.__globals__ }}",
    "{{ self._TemplateReference__context.environment }}",
    "{% macro m() %}{% endmacro %}{{ m._func.__globals__ }}",
    "{% macro m() %}{{ caller.__globals__ }}{% endmacro %}{% call m() %}{% endcall %}",
    "{{ ().__class__.__base__.__subclasses__() }}",
    "{{ (1).__class__ }}",
    "{{ [3, 1].sort() }}",
    "{{ [1].__iter__() }}",
    '{{ ([1] | map("upper")).gi_frame }}',
    "{{ undefined_thing.__init__.__globals__ }}",
    # Other files
    '{% include "/etc/passwd" %}',
    '{% include ["project.yml"] %}',
    '{% include "models/" ~ "m.sql" %}',
    '{% import "/etc/passwd" as x %}',
    '{% from "project.yml" import x %}',
    '{% extends "project.yml" %}',
]


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer([ROOT / "macros"], {"shown": sql_text})


def test_nothing_but_data_and_what_computes_is_reached(project, runner) -> None:
    """Each of them is a mistake of its own, and nothing of it has happened."""
    folder = project({f"models/m{number:02}.sql": template for number, template in enumerate(WORLD)})
    ran = runner("ls")
    assert ran.code == 2 and not ran.out and "Traceback" not in ran.err
    told = re.findall(r"^error\[template(?:-unsafe)?\]: .*\n  --> models/m(\d+).sql:1$", ran.err, re.MULTILINE)
    assert [WORLD[number] for number in range(len(WORLD)) if f"{number:02}" not in told] == []
    assert ran.err.count("error[") == len(WORLD) and not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("command", "files", "place"),
    [
        ("ls", {"macros/a.sql": "\n{% macro a() %}{{ %s }}{% endmacro %}", "models/m.sql": "{{ a() }}"},
         "macros/a.sql:2"),
        ("ls", {"macros/a.sql": "\n{{ %s }}"}, "macros/a.sql:2"),
        ("compile", {"macros/a.sql": "{% macro test_x(model) %}{{ %s }}{% endmacro %}", "models/m.sql": "select 1",
          "models/m.yml": "models:\n  - {name: m, data_tests: [x]}"}, "macros/a.sql:1"),
        ("compile", {"macros/functions/f.sql": "{{ %s }}"}, "macros/functions/f.sql:1"),
        ("ls", {"project.yml": "targets:\n  local: {path: '{{ %s }}'}"}, "project.yml:2:11"),
        ("ls", {"project.yml": "sources:\n  - {name: a, format: canal, files: '{{ %s }}'}"}, "project.yml:2:30"),
    ],
)  # fmt: skip
def test_templates_are_the_same_everywhere(project, runner, command: str, files: dict[str, str], place: str) -> None:
    escape = 'var.__init__.__globals__["o" ~ "s"].popen("touch ran").read()'
    folder = project({name: text.replace("%s", escape) for name, text in files.items()})
    ran = runner(command)
    assert "error[template-unsafe]: access to attribute '__init__'" in ran.err and f"--> {place}" in ran.err, ran.err
    assert ran.code == 2 and not (folder / "ran").exists()


def test_paths_and_other_objects_of_the_runner_are_data(tmp_path: Path) -> None:
    """What the runner hands to its own macros may lead to objects that can do more than they may here."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own/a.sql").write_text("{% macro a(where) %}{{ where.path.unlink() }}{% endmacro %}")
    secret = tmp_path / "kept"
    secret.write_text("kept")
    with pytest.raises(RunnerError) as caught:
        Renderer([tmp_path / "own", ROOT / "macros"], {}).call("a", Where(secret))
    assert caught.value.code == "template-unsafe" and secret.read_text() == "kept"


BOUNDS = [
    "{% for i in range(10 ** 12) %}{% endfor %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% for i in [1] recursive %}{{ loop([1]) }}{{ loop([1]) }}{% endfor %}",
    "{{ " + "(" * 100_000 + " }}",
    "{{ 1" + " + 1" * 5_000 + " }}",
    "{% if 1 %}" * 5_000,
]


@pytest.mark.parametrize("template", BOUNDS, ids=lambda text: text[:40])
def test_ranges_and_recursion_have_bounds(renderer: Renderer, template: str) -> None:
    with pytest.raises(RunnerError) as caught:
        renderer.expand(template, Where(Path("models/m.sql"), 1))
    assert caught.value.code in ("template-size", "template") and caught.value.message


def test_macros_that_call_themselves_in_a_model(project, runner) -> None:
    project({"models/m.sql": "{% macro m() %}{{ m() }}{% endmacro %}\nselect {{ m() }}"})
    ran = runner("ls")
    assert ran.code == 2 and ran.err.startswith("error[template-size]: maximum recursion depth exceeded")
    assert ran.err.splitlines()[1:] == [
        "  --> models/m.sql:1",
        "  hint: make less in one template, and do not let macros call themselves without end",
    ]


WORKS = [
    ("{% for i in range(3) %}{{ i }}{{ ', ' if not loop.last }}{% endfor %}", "0, 1, 2"),
    ("{% for a in [1, 2] %}{{ loop.index }}{{ loop.length }}{{ loop.cycle('x', 'y') }}{% endfor %}", "12x22y"),
    ("{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "3"),
    ("{% set a = [] %}{% do a.append('x') %}{% do a.extend(['y']) %}{{ a | join(', ') }}", "x, y"),
    ("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}", "a1b2"),
    ("{{ 'in 2024: %s, %03d' % ('a', 7) }}", "in 2024: a, 007"),
    ("{{ 'in 2024: {}, {:>3}'.format('a', 7) }}", "in 2024: a,   7"),
    ("{{ '%s-%s' | format('a', 'b') }}{{ '%(a)s' | format(a=1) }}", "a-b1"),
    ("{{ '{\"a\": {\"b\": %s}}' % 1 }}", '{"a": {"b": 1}}'),
    ("{{ 'a-b'.split('-') | map('upper') | list | tojson }}", '["A", "B"]'),
    ("{{ 'abc'.replace('b', 'x')[:2].upper() }}{{ 'x' ~ 1 ~ none }}", "AXx1None"),
    ("{{ [{'a': 2}, {'a': 1}] | sort(attribute='a') | map(attribute='a') | join }}", "12"),
    ("{% macro m(n) %}{{ n }}{{ m(n - 1) if n }}{% endmacro %}{{ m(3) }}", "3210"),
    ("{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}x{% endcall %}", "<x>"),
    ("{{ shown('it\\'s') }}{{ 2 ** 10 }}{{ 7 % 4 }}{{ 1 + 1 }}{{ 'a' * 3 }}", "'it\\'s'10243" + "2aaa"),
    ("{{ contract | length > 20 }}{{ x is defined }}{{ 1 if 'a' in ('a', 'b') }}", "TrueFalse1"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "text"), WORKS)
def test_what_computes_works_as_ever(tmp_path: Path, template: str, text: str) -> None:
    names = {"shown": sql_text, "contract": dict.fromkeys(range(30))}
    assert Renderer([ROOT / "macros"], names).expand(template, Where(Path("m.sql"), 1)) == text


def test_values_of_a_project_are_filled_in_by_the_same_rules() -> None:
    filler = Filler({"a": "b"}, None, Secrets())
    assert filler.environment.from_string("{{ var('a') | upper }}").render() == "B"
    assert set(filler.environment.globals) == {"range", "dict", "namespace", "var", "env_var", "target"}
