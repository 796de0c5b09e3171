"""The reader of data tests and unit tests in the properties of models: it makes their nodes."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.csv_text import Csv, csv_of, read_csv
from runner.errors import Problems, Where, did_you_mean, nearest_or_all
from runner.project.mirror import Mirror, MirrorQuery
from runner.project.nodes import DataTest, FunctionTest, Node, Overrides, Project, UnitTest
from runner.project.properties import (
    TEST_SETTINGS,
    UNIT_TEST_KEYS,
    TestConfig,
    mappings,
    needed,
    optional_text,
    read_boolean,
    ref_name,
    rows,
    settings_of,
    test_settings,
)
from runner.project.sql_analysis import check_expression
from runner.project.templates import Templates
from runner.project.variables import texts_of
from runner.yaml_text import Yaml, read_yaml

# The data tests that are generated, for each source and for each mirror; models cannot have them.
GENERATED = ("conserved", "fits", "followed")
OVERRIDE_KEYS = ("vars", "macros")
# The input of a unit test that is the table of its model, and the macro that says whether the table exists.
THIS, IS_INCREMENTAL = "this", "is_incremental"
# Arguments that a test gets without having them written: its model, and for a mirror the mirror or its query.
GIVEN = ("model", "query", "mirror")
# Data test -> its arguments that are parts of expressions of SQL, each with the words before it in the expression.
SQL_ARGUMENTS = {
    "expression_is_true": {"expression": ""},
    "row_count": {"at_least": "", "at_most": ""},
    "fresh": {"within": "interval"},
}


class Tests:
    """Creates the nodes of a project's tests. `nodes` are those that there are so far, by name."""

    def __init__(self, project: Project, templates: Templates, nodes: Mapping[str, Node]) -> None:
        self.project, self.templates, self.nodes = project, templates, nodes
        self.signatures = {kind: one for kind, one in templates.tests().items() if kind not in GENERATED}

    def data_test(self, node: Node, column: str | None, entry: Yaml) -> Node | None:
        """Returns the node of a test such as `unique`, of a model or of one of its columns; None if it is not
        enabled.
        """
        kind, written = _kind(entry)
        arguments, settings = _arguments_and_settings(written, self.templates.models)
        name, description = (optional_text(written.get(key)) for key in ("name", "description"))
        if not settings.get("enabled", True):
            return None
        where = entry.where()
        if kind not in self.signatures:
            raise entry.error("test-unknown", f'there is no data test "{kind}"', self._instead(kind))
        named = {**arguments, **({"column": column} if column else {})}
        if "column" in named and "column_name" in self.signatures[kind].arguments:
            named["column_name"] = named.pop("column")
        self._check_arguments(kind, named, column, entry)
        self._check_sql(kind, named, entry)
        query = self._recounted(kind, node, entry)
        if query:
            named["query"] = replace(query, share=named.get("share", 1))
        if "mirror" in self.signatures[kind].arguments:
            named["mirror"] = _mirror_of(kind, node, entry)
        reading = self.templates.read_test(kind, node.name, named)
        config = self._config(settings, reading.config, entry)
        own = node.label.replace(".", "_") if node.resource_type == "source" else node.name
        label = self._free(name or "_".join([kind, own, *([column] if column else [])]))
        parents = (node.name, *(query.mirror.models if query else ()), *reading.parents)
        return Node(
            label,
            "test",
            DataTest(kind, node.name, named, config),
            parents,
            frozenset(config.tags),
            self.project.relative(where.path),
            description,
            where=where,
        )

    def _config(self, settings: Mapping[str, Any], by_macro: Mapping[str, Any], entry: Yaml) -> TestConfig:
        """Returns the config of a test: settings of its macro, unless the test has others, with `{{ }}` filled in."""
        config = TestConfig(**{**test_settings(settings_of(by_macro, entry.where())), **settings})
        if "{" not in config.where:
            return config
        condition = self.templates.expand(config.where, entry.where())[0]
        check_expression(entry, "where", condition)
        return replace(config, where=condition)

    def singular_test(self, path: Path) -> Node | None:
        """Returns the node of a test that is a file: a query of the rows that fail. None if it is not enabled."""
        where = Where(path, 1)
        reading = self.templates.read_singular_test(path)
        config = TestConfig(**test_settings(settings_of(reading.config, where)))
        if not config.enabled:
            return None
        parents = tuple(dict.fromkeys(reading.parents))
        test = DataTest("singular", "", config=config, file=path)
        return Node(path.stem, "test", test, parents, frozenset(config.tags), self.project.relative(path), where=where)

    def _instead(self, kind: str) -> str:
        name = kind.rpartition(".")[2]
        if name != kind:
            return f'there are no packages: write the macro "test_{name}" in macros/, and the test as "{name}"'
        return nearest_or_all(kind, self.signatures)

    def _recounted(self, kind: str, node: Node, entry: Yaml) -> MirrorQuery | None:
        """Returns the query of a mirror, on the rows that the mirror has read, for a test that runs the query again."""
        if "query" not in self.signatures[kind].arguments:
            return None
        _mirror_of(kind, node, entry)
        return node.model.query if node.model and isinstance(node.model.query, MirrorQuery) else None

    def _check_arguments(self, kind: str, named: Mapping[str, object], column: str | None, entry: Yaml) -> None:
        signature = self.signatures[kind]
        expected = [argument for argument in signature.arguments if argument not in GIVEN]
        if unknown := [argument for argument in named if argument not in expected]:
            hint = f"it takes {', '.join(expected)}" if expected else "it takes none"
            hint = did_you_mean(unknown[0], [one for one in expected if one not in named]) or hint
            raise entry.error("test-arguments", f'the data test "{kind}" takes no argument "{unknown[0]}"', hint)
        if missing := [argument for argument in expected if argument in signature.required - named.keys()]:
            needs_column = "column" in missing[0] and not column
            hint = 'name the column, or put the test under it in "columns"' if needs_column else ""
            raise entry.error("test-arguments", f'the data test "{kind}" needs {", ".join(missing)}', hint)

    def _check_sql(self, kind: str, named: Mapping[str, Any], entry: Yaml) -> None:
        """Raises `expression-syntax` for an argument that a built-in test uses as SQL, and that is not an
        expression.
        """
        if not self.templates.is_built_in(f"test_{kind}"):
            return
        for argument, before in SQL_ARGUMENTS.get(kind, {}).items():
            if named.get(argument) is not None:
                check_expression(entry, argument, str(named[argument]), before)
        if kind == "accepted_values" and named.get("quote") == "false":
            for value in named["values"]:
                check_expression(entry, "values", value)

    def _free(self, label: str) -> str:
        """Returns the label, with a number behind it if the name is taken."""
        labels = itertools.chain([label], (f"{label}_{number}" for number in itertools.count(2)))
        return next(one for one in labels if one not in self.nodes)

    def unit_test(self, entry: Yaml) -> Node | None:
        """Returns the node of a unit test; None if its model exists but could not be read."""
        entry.only(UNIT_TEST_KEYS)
        for key in ("name", "model", "given", "expect"):
            if not entry.get(key):
                raise entry.error("unit-test-missing", f'a unit test needs "{key}"')
        model = entry["model"].text()
        if model not in self.nodes and model in self.templates.models:
            return None
        given = {
            model if (name := ref_name(needed(one, "input"))) == THIS else name: given_rows(one, self.project.root)
            for one in entry["given"].list().elements()
            if one.only(["input", *ROWS_KEYS])
        }
        tested = self._tested(entry, model)
        _check_inputs(entry, tested, given)
        new_rows = tested.model.new_rows if tested.model else ()
        expect = given_rows(entry["expect"].only(ROWS_KEYS), self.project.root)
        test = UnitTest(model, given, expect, new_rows, *_overrides(entry, tested))
        path, description = self.project.relative(entry.where().path), optional_text(entry.get("description"))
        name = entry["name"].text()
        return Node(name, "unit_test", test, (model,), path=path, description=description, where=entry.where())

    def _tested(self, entry: Yaml, model: str) -> Node:
        """Returns the node of a model that can be tested: any model that does not land messages."""
        known = [name for name, node in self.nodes.items() if node.model and not node.model.source]
        if model not in known:
            hint = nearest_or_all(model, known)
            raise entry["model"].error("model-unknown", f'there is no model "{model}" to test', hint)
        return self.nodes[model]


def _mirror_of(kind: str, node: Node, entry: Yaml) -> Mirror:
    """Returns the mirror that a test is for; raises `test-arguments` for a model that is none."""
    mirror = node.model.mirror if node.model else None
    if mirror is None:
        raise entry.error("test-arguments", f'the data test "{kind}" is only for mirrors')
    return mirror


def function_tests(path: Path, project: Project) -> Iterator[Node]:
    """Returns the unit tests of SQL functions in a file: a node for each function."""
    file = read_yaml(path).only(["functions"])
    for function, tests in file["functions"].mapping().items() if file.get("functions") else ():
        test, where = FunctionTest(function, tests), tests.where()
        yield Node(f"function.{function}", "unit_test", test, path=project.relative(path), where=where)


def _overrides(entry: Yaml, tested: Node) -> tuple[Overrides, Path | None]:
    """Returns a unit test's overrides of variables and of macros' texts, and the file that is rendered with them."""
    yaml, query = entry.get("overrides"), tested.model and tested.model.query
    if yaml is None:
        return Overrides(), None
    yaml.only(OVERRIDE_KEYS)
    if not isinstance(query, Path):
        raise yaml.error("unit-test-overrides", f'"{tested.name}" is generated: it has no template')
    variables = yaml["vars"].mapping().data() if yaml.get("vars") else {}
    macros = yaml["macros"].mapping() if yaml.get("macros") else None
    said = macros.get(IS_INCREMENTAL) if macros else None
    texts = {name: text for name, text in texts_of(macros).items() if name != IS_INCREMENTAL}
    return Overrides(variables, texts, read_boolean(said, IS_INCREMENTAL) if said else False), query


def _check_inputs(entry: Yaml, target: Node, given: Collection[str]) -> None:
    missing = [parent for parent in target.parents if parent not in given]
    extra = [name for name in given if name not in (*target.parents, target.name)]
    if missing or extra:
        lacks = f"lacks rows for {', '.join(missing)}"
        what = lacks if missing else f"gives rows for {', '.join(extra)}, which the model does not read"
        hint = f"inputs of the model: {', '.join(target.parents) or 'none'}"
        raise entry["given"].error("unit-test-given", f'the unit test of "{target.name}" {what}', hint)


ROWS_KEYS = ("rows", "format", "fixture")
FORMATS = ("dict", "csv")
FIXTURES = (".csv", ".yml")


def given_rows(yaml: Yaml, root: Path) -> list[Any]:
    """Returns rows, as mappings of columns to values: text, None, lists and dicts; raises `unit-test-rows`."""
    kind = yaml["format"].text() if yaml.get("format") else FORMATS[0]
    if kind not in FORMATS:
        hint = "write the rows, as dict or csv" if kind == "sql" else nearest_or_all(kind, FORMATS)
        raise yaml["format"].error("unit-test-rows", f'rows cannot be in "{kind}"', hint)
    if yaml.get("fixture"):
        return _fixture(yaml["fixture"], root / "tests" / "fixtures")
    if kind == "csv":
        written = needed(yaml, "rows")
        return _of_csv(csv_of(written.text().strip(), written.where().path))
    return rows(yaml)


def _fixture(yaml: Yaml, folder: Path) -> list[Any]:
    """Returns the rows of a file in a folder, whose name is given with its ending or without."""
    name = yaml.text()
    files = sorted(path for path in folder.rglob("*") if path.suffix in FIXTURES)
    found = [path for path in files if name in (path.name, path.stem)]
    if len(found) != 1:
        what = f'there is no fixture "{name}"' if not found else f'{len(found)} fixtures have the name "{name}"'
        hint = nearest_or_all(name, [path.name for path in files]) or "tests/fixtures/NAME.csv, or NAME.yml"
        raise yaml.error("unit-test-rows", what, hint)
    return _of_csv(read_csv(found[0])) if found[0].suffix == ".csv" else mappings(read_yaml(found[0]))


def _of_csv(read: Csv) -> list[Any]:
    return [dict(zip(read.columns, row)) for row in read.rows]


# Keys that stand beside the arguments of a test and are not arguments.
BESIDE = ("name", "description", "config", "arguments", "test_name", *TEST_SETTINGS)
ONE_NAME = "for instance: accepted_values: {values: [a, b]}"


def _kind(entry: Yaml) -> tuple[str, Yaml]:
    """Returns the kind of a test such as `unique`, `accepted_values: {values: [a, b]}`, or the same with `arguments`,
    `config` and `name` beside each other, and the mapping of these; raises `test-arguments`.
    """
    if isinstance(entry.value, str):
        return entry.value, Yaml({}, {})
    if entry.get("test_name"):
        return entry["test_name"].text(), entry
    if not isinstance(entry.value, dict) or len(entry.value) != 1:
        raise entry.error("test-arguments", "a data test is one name with its arguments", ONE_NAME)
    ((kind, written),) = entry.items()
    return kind, Yaml({}, {}) if written.value is None else written.mapping()


def _arguments_and_settings(written: Yaml, models: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the arguments of a test and its settings; raises all mistakes in their values."""
    problems, arguments, settings = Problems(), dict[str, Any](), dict[str, Any]()
    for name, yaml in _arguments(written):
        with problems.gathered():
            arguments[name] = _argument(name, yaml, models)
    with problems.gathered():
        settings = test_settings(_settings(written))
    problems.raise_if_any()
    return arguments, settings


def _arguments(written: Yaml) -> Iterator[tuple[str, Yaml]]:
    """Returns the arguments, each under the name that macros have for it."""
    inline = [(name, yaml) for name, yaml in written.items() if name not in BESIDE]
    under = written["arguments"].mapping().items() if written.get("arguments") else []
    if inline and under:
        name, yaml = inline[0]
        raise yaml.error("test-arguments", f'"{name}" stands beside "arguments"', 'put all arguments under "arguments"')
    for name, yaml in inline or under:
        yield ("column" if name == "column_name" else name), yaml


def _settings(written: Yaml) -> Iterator[tuple[str, Yaml]]:
    under = dict(written["config"].mapping().items()) if written.get("config") else {}
    for name in TEST_SETTINGS:
        if name in under and written.get(name):
            raise written[name].error("duplicate-key", f'"{name}" stands beside "config" and in it', "keep one")
        if yaml := written.get(name):
            yield name, yaml
    yield from under.items()


def _argument(name: str, yaml: Yaml, models: Collection[str]) -> Any:
    match name:
        case "column" | "field" | "expression":
            return yaml.text()
        case "share":
            return _share(yaml)
        case "within_days":
            return _days(yaml)
        case "values":
            return [value.text() for value in yaml.list().elements()]
        case "to":
            return _model(yaml, models)
    return yaml.value


def _model(yaml: Yaml, models: Collection[str]) -> str:
    model = ref_name(yaml)
    if model not in models:
        raise yaml.error("ref-unknown", f'there is no model "{model}"', nearest_or_all(model, models))
    return model


def _share(yaml: Yaml) -> float:
    """Returns a part of all keys: more than 0, and at most 1."""
    with contextlib.suppress(ValueError):
        if 0 < (share := float(yaml.text())) <= 1:
            return share
    raise yaml.error("test-arguments", f'"share" must be a number from 0 to 1, not "{yaml.value}"', "such as 0.01")


def _days(yaml: Yaml) -> int:
    """Returns a number of days: 1 or more."""
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text := yaml.text()):
        raise yaml.error("test-arguments", f'"within_days" must be a whole number of days, not "{text}"', "such as 7")
    return int(text)
