"""Contracts: the promises of models about their columns, read from properties."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runner.errors import Problems, RunnerError, nearest_or_all
from runner.yaml_text import Yaml

NOT_NULL = "not_null"
CONSTRAINT_KEYS = ("type", "name")
# Types in SQL, some of them under several names.
TYPES = (
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
            types[name] = _type(column, name)
            not_null += [name for kind in _constraints(column) if kind == NOT_NULL]
    problems.raise_if_any()
    if not types:
        message = "a contract that is enforced needs the columns of the model, with their types"
        raise RunnerError("contract-columns", message, hint="columns: [{name: id, data_type: bigint}]")
    return Contract(types, tuple(dict.fromkeys(not_null)))


def _type(column: Yaml, name: str) -> str:
    if not column.get("data_type"):
        message = f'the contract needs the type of the column "{name}"'
        raise column.error("contract-columns", message, "data_type: string")
    text = column["data_type"].text().strip()
    simple = SIMPLE.fullmatch(text)
    if not (simple and simple[1].lower() in TYPES) and not NESTED.fullmatch(text):
        hint = nearest_or_all(simple[1].lower() if simple else text, TYPES)
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
