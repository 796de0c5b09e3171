"""Properties of models and tests, read from YAML files beside the models: columns, contracts, the config of tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from runner.errors import Problems, RunnerError, Where, nearest_or_all
from runner.files import read_text
from runner.project import dbt_hints
from runner.project.sql_analysis import expression
from runner.yaml_text import Yaml, read_yaml, whole_number

PROPERTY_KEYS = ("version", "models", "seeds", "sources", "mirrors", "unit_tests", "exposures")
MODEL_KEYS = ("name", "description", "config", "meta", "docs", "columns", "data_tests", "tests")
COLUMN_KEYS = (
    *("name", "description", "data_type", "constraints", "config", "meta", "tags", "quote", "data_tests", "tests"),
)
EXPOSURE_KEYS = (
    "name", "label", "type", "url", "maturity", "description", "owner", "depends_on", "tags", "meta", "config",
)  # fmt: skip
UNIT_TEST_KEYS = ("name", "description", "model", "given", "expect", "overrides")


# The version of property files, which dbt's have too.
VERSION = "2"


def read_property_file(path: Path, problems: Problems) -> Yaml | None:
    """Returns a property file; None if it cannot be read. Mistakes in it are added to `problems`."""
    read = None
    with problems.gathered():
        read = read_yaml(path).mapping()
    if read is None:
        return None
    with problems.gathered():
        read.only(PROPERTY_KEYS, instead=dbt_hints.KEYS)
    with problems.gathered():
        if (version := read.get("version")) and version.text() != VERSION:
            message = f'the version of property files is {VERSION}, not "{version.text()}"'
            raise version.error("properties-version", message, "remove the line, or write version: 2")
    return read


def entries(
    yaml: Yaml | None,
    key: str,
    known: tuple[str, ...],
    problems: Problems | None = None,
    of_other_kind: Callable[[Yaml], bool] | None = None,
) -> list[Yaml]:
    """Returns the entries of the list under a key, each with a name. Mistakes are added to `problems`, or raised
    without it. An entry with unknown keys is returned too, so that its other mistakes are found. Entries for which
    `of_other_kind` is true are passed over.
    """
    gather = Problems() if problems is None else problems
    out = []
    with gather.gathered():
        for entry in yaml[key].list().elements() if yaml and yaml.get(key) else ():
            if of_other_kind and of_other_kind(entry):
                continue
            with gather.gathered():
                entry.only(known, instead=dbt_hints.KEYS)
            with gather.gathered():
                if not entry.get("name"):
                    raise entry.error("name-missing", f'every entry of "{key}" needs a "name"')
                entry["name"].text()
                out.append(entry)
    if problems is None:
        gather.raise_if_any()
    return out


def properties_by_name(files: Iterable[Yaml], key: str, problems: Problems) -> dict[str, Yaml]:
    """Returns the properties of models or seeds, by their names."""
    out: dict[str, Yaml] = {}
    for entry in (entry for file in files for entry in entries(file, key, MODEL_KEYS, problems)):
        first = out.setdefault(entry["name"].text(), entry)
        if first is not entry:
            message = f'the {key[:-1]} "{entry["name"].value}" is described twice'
            problems.add(entry.error("duplicate-key", message, f"also at {first.where()}"))
    return out


def described_columns(yaml: Yaml | None) -> dict[str, str]:
    """Returns the columns under `columns`, with their descriptions."""
    columns = entries(yaml, "columns", COLUMN_KEYS)
    return {column["name"].text(): optional_text(column.get("description")) for column in columns}


def optional_text(yaml: Yaml | None) -> str:
    return yaml.text() if yaml else ""


def needed(yaml: Yaml, key: str) -> Yaml:
    if not yaml.mapping().get(key):
        raise yaml.error("unit-test-missing", f'{yaml.name()} needs "{key}"')
    return yaml[key]


def data_tests(yaml: Yaml) -> tuple[Yaml, ...]:
    """Returns the data tests of a model or of a column, under `data_tests` or under the older name `tests`."""
    if yaml.get("data_tests") and yaml.get("tests"):
        raise yaml["tests"].error("duplicate-key", '"tests" is an older name of "data_tests"', "keep one of them")
    tests = yaml.get("data_tests") or yaml.get("tests")
    return tuple(tests.as_list()) if tests else ()


def rows(yaml: Yaml) -> list[Any]:
    """Returns the rows of a test: mappings of columns to values."""
    return mappings(needed(yaml, "rows"))


def mappings(yaml: Yaml) -> list[Any]:
    return [row.mapping().value for row in yaml.list().elements()]


def ref_name(yaml: Yaml) -> str:
    """Returns the name of the model in a text such as `ref('orders')`.

    >>> ref_name(Yaml("ref('orders')", {}))
    'orders'
    """
    text = yaml.text().strip()
    return text.removeprefix("ref(").removesuffix(")").strip("'\" ")


BLOCK = re.compile(r"\{%-?\s*docs\s+(\w+)\s*-?%\}(.*?)\{%-?\s*enddocs\s*-?%\}", re.DOTALL)
TAKEN = re.compile(r"""\{\{-?\s*doc\(\s*(['"])([^'"]*)\1\s*\)\s*-?\}\}""")


def doc_blocks(files: Iterable[Path], problems: Problems) -> dict[str, str]:
    """Returns the blocks in Markdown files, name -> text; adds `duplicate-key` for a name that is given twice."""
    blocks: dict[str, str] = {}
    for path in files:
        text = read_text(path)
        for found in BLOCK.finditer(text):
            name, where = found[1], Where(path, text.count("\n", 0, found.start()) + 1)
            if name in blocks:
                problems.add(RunnerError("duplicate-key", f'there are two blocks "{name}"', where, "keep one"))
            blocks.setdefault(name, found[2].strip())
    return blocks


def with_docs(file: Yaml, blocks: Mapping[str, str], problems: Problems) -> Yaml:
    """Returns a property file whose descriptions have the blocks that they name; adds `doc-unknown` for unknown
    blocks.
    """

    def filled(yaml: Yaml) -> Any:
        match yaml.value:
            case dict():
                return {key: described(one) if key == "description" else filled(one) for key, one in yaml.items()}
            case list():
                return [filled(one) for one in yaml.elements()]
        return yaml.value

    def described(yaml: Yaml) -> Any:
        if not isinstance(yaml.value, str):
            return yaml.value
        for _, name in TAKEN.findall(yaml.value):
            if name not in blocks:
                hint = nearest_or_all(name, blocks) or "write {% docs NAME %} ... {% enddocs %} in models/NAME.md"
                problems.add(yaml.error("doc-unknown", f'there is no block "{name}"', hint))
        return TAKEN.sub(lambda found: blocks.get(found[2], ""), yaml.value)

    return replace(file, value=filled(file))


# --- contracts

NOT_NULL = "not_null"
CONSTRAINT_KEYS = ("type", "name")
# Types in SQL, some of them under several names.
COLUMN_TYPES = (
    *("string", "varchar", "char", "boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint"),
    *("long", "float", "real", "double", "decimal", "dec", "numeric", "date", "timestamp", "timestamp_ltz"),
    *("timestamp_ntz", "binary", "variant"),
)
SIMPLE = re.compile(r"(\w+)(\s*\(\s*\d+\s*(,\s*\d+\s*)?\))?", re.ASCII)
NESTED = re.compile(r"(array|map|struct)\s*<[^;'\"\\]*>", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Contract:
    """The contract of a model: the types in SQL of all its columns, and its columns that are never null."""

    types: dict[str, str]
    not_null: tuple[str, ...] = ()


def is_enforced(value: Any) -> bool:
    """Returns True if a setting `contract` is enforced; raises RunnerError, without a place, for any other value."""
    if isinstance(value, dict) and set(value) <= {"enforced", "alias_types"}:
        enforced = str(value.get("enforced", False)).lower()
        if enforced in ("true", "false"):
            return enforced == "true"
    raise RunnerError("setting-value", '"contract" says whether it is enforced', hint="contract: {enforced: true}")


def read_contract(columns: list[Yaml]) -> Contract:
    """Returns the contract of the columns in a model's properties; raises all mistakes at once, without a place if
    there are no columns.
    """
    problems = Problems()
    types: dict[str, str] = {}
    not_null: list[str] = []
    for column in columns:
        with problems.gathered():
            name = column["name"].text()
            types[name] = _column_type(column, name)
            not_null += [name for kind in _constraints(column) if kind == NOT_NULL]
    problems.raise_if_any()
    if not types:
        message = "a contract that is enforced needs the columns of the model, with their types"
        raise RunnerError("contract-columns", message, hint="columns: [{name: id, data_type: bigint}]")
    return Contract(types, tuple(dict.fromkeys(not_null)))


def _column_type(column: Yaml, name: str) -> str:
    if not column.get("data_type"):
        message = f'the contract needs the type of the column "{name}"'
        raise column.error("contract-columns", message, "data_type: string")
    text = column["data_type"].text().strip()
    simple = SIMPLE.fullmatch(text)
    if not (simple and simple[1].lower() in COLUMN_TYPES) and not NESTED.fullmatch(text):
        hint = nearest_or_all(simple[1].lower() if simple else text, COLUMN_TYPES)
        raise column["data_type"].error("contract-type", f'"{text}" cannot be the type of a column', hint)
    return text


def _constraints(column: Yaml) -> Iterator[str]:
    for entry in column["constraints"].list().elements() if column.get("constraints") else ():
        kind = entry.only(CONSTRAINT_KEYS).get("type")
        if kind is None or kind.text() != NOT_NULL:
            message = f'"{kind.text() if kind else ""}" cannot be a constraint'
            hint = "constraints: [{type: not_null}]; data tests check what else is to be so"
            raise (kind or entry).error("contract-constraint", message, hint)
        yield kind.text()


# --- the config of data tests

SEVERITIES = ("error", "warn")
ANY_ROW = "!= 0"


@dataclass(frozen=True)
class TestConfig:
    """The config of a data test. The test reads the rows of its model for which `where` is true; of the rows that it
    finds, `limit` count. `fail_calc` makes a number of them, with which `warn_if` and `error_if` compare. With
    `store_failures`, the rows are written to a table with the name of the test.
    """

    severity: str = "error"
    where: str = ""
    limit: int | None = None
    fail_calc: str = "count(*)"
    warn_if: str = ANY_ROW
    error_if: str = ANY_ROW
    store_failures: bool = False
    enabled: bool = True
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] | None = None

    @property
    def counts_rows(self) -> bool:
        """True if any row that is found is a failure."""
        return (self.fail_calc, self.warn_if, self.error_if) == ("count(*)", ANY_ROW, ANY_ROW)


# The operators with which a condition on the number of failures may begin.
CONDITION = re.compile(r"\s*(?:[<>=]|!=|(?:between|in|not|is)\b)", re.IGNORECASE)

TEST_SETTINGS = tuple(field.name for field in fields(TestConfig))


def test_settings(settings: Iterable[tuple[str, Yaml]]) -> dict[str, Any]:
    """Returns the settings of a test that YAML gives; raises `test-severity`, `setting-unknown` and `setting-value`."""
    problems, read = Problems(), {}
    for name, yaml in settings:
        with problems.gathered():
            read[name] = _setting(name, yaml)
    problems.raise_if_any()
    return read


def _setting(name: str, yaml: Yaml) -> Any:
    match name:
        case "severity":
            severity = yaml.text().lower()
            if severity not in SEVERITIES:
                hint = nearest_or_all(severity, SEVERITIES)
                raise yaml.error("test-severity", f'unknown severity "{yaml.text()}"', hint)
            return severity
        case "where" if "{" in yaml.text() or not yaml.text():
            return yaml.text()
        case "where" | "fail_calc":
            return expression(yaml, name)
        case "warn_if" | "error_if":
            if not CONDITION.match(yaml.text()):
                message = f'"{name}" compares the number of failures, and "{yaml.text()}" does not'
                raise yaml.error("setting-value", message, f'{name}: ">10"')
            return expression(yaml, name, "failures")
        case "limit":
            number = whole_number(yaml.text())
            if number is None:
                raise yaml.error("setting-value", f'"limit" is a whole number, not "{yaml.text()}"', "limit: 100")
            return number
        case "store_failures" | "enabled":
            return read_boolean(yaml, name)
        case "tags":
            return tuple(tag.text() for tag in yaml.as_list())
        case "meta":
            return yaml.mapping().value
    hint = nearest_or_all(name, TEST_SETTINGS)
    raise yaml.error("setting-unknown", f'a test has no setting "{name}"', hint)


def read_boolean(yaml: Yaml, name: str) -> bool:
    """Returns a value of YAML that is true or false; raises `setting-value`."""
    text = yaml.text().lower()
    if text not in ("true", "false"):
        raise yaml.error("setting-value", f'"{name}" is true or false, not "{yaml.text()}"')
    return text == "true"


def settings_of(settings: Mapping[str, Any], where: Where) -> list[tuple[str, Yaml]]:
    """Returns the settings that a template gives, as they would stand in YAML."""
    return [(name, Yaml(_as_yaml(value), {(): where})) for name, value in settings.items()]


def _as_yaml(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _as_yaml(one) for key, one in value.items()}
        case list() | tuple():
            return [_as_yaml(one) for one in value]
        case bool():
            return "true" if value else "false"
        case None:
            return None
    return str(value)
