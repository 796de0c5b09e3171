"""Small projects in temporary folders, and the command line in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pytest
from hypothesis import HealthCheck, settings

from runner import cli
from runner.cli import main
from runner.compile.query import compile_format
from runner.project.project import project_folders
from runner.tracing import TracingSandbox

pytest_plugins = ["tests.durations", "tests.spark_fixtures"]

PROJECT = "name: shop\nsources:\n  - {name: orders, format: canal, files: in/*.jsonl}\n"


# Random examples: the same in each run, so that a failure is of the change; new ones with --hypothesis-profile=soak.
for name, more in {"tests": {"derandomize": True}, "soak": {"max_examples": 5000}}.items():
    unhurried = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
    settings.register_profile(name, **unhurried, **more)
settings.load_profile("tests")

# Fixtures that start a JVM, in this process's reach or as a process of its own.
JVM_FIXTURES = {"spark", "broker", "server"}
ENGINE_FIXTURES = {"broker", "server"}
# Storages that need more than Spark.
ENGINE_STORAGES = {"delta", "iceberg", "rest", "database"}


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks with `spark` what uses a JVM through a fixture, and with `engines` what uses another engine through one, or
    a storage that is one; tests that start one themselves say so.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & ENGINE_FIXTURES or _values(item) & ENGINE_STORAGES:
            item.add_marker("engines")
        if fixtures & JVM_FIXTURES:
            item.add_marker("spark")


def _values(item: pytest.Item) -> set[str]:
    """The texts among the values of parameters."""
    call = getattr(item, "callspec", None)
    return {value for value in call.params.values() if isinstance(value, str)} if call else set()


@pytest.fixture(scope="session", autouse=True)
def compiled_once() -> Iterator[None]:
    """Most of the time of a command in this process would go into compiling the same macros and the same formats, and
    into making the same parser.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jinja2.Environment, "compile", _remembered(jinja2.Environment.compile))
        patch.setattr(jinja2.Environment, "parse", _remembered(jinja2.Environment.parse))
        patch.setattr("runner.commands.formats.compile_format", _remembered_format(compile_format))
        patch.setattr("runner.cli._parser", _remembered_parser(cli._parser))
        yield


def _remembered(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, called once for each set of arguments; all environments are alike, except those that trace."""
    results: dict[object, Any] = {}

    def call(environment: jinja2.Environment, *arguments: Any, **named: Any) -> Any:
        if isinstance(environment, TracingSandbox):
            return method(environment, *arguments, **named)
        key = (arguments, tuple(sorted(named.items())))
        if key not in results:
            results[key] = method(environment, *arguments, **named)
        return results[key]

    return call


def _remembered_format(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, called once for each spec that only built-in macros print."""
    results: dict[str, Any] = {}

    def call(macro: Any, spec: Any, name: str, zone: None) -> Any:
        if len(macro.__self__.folders) > 1:
            return method(macro, spec, name, zone)
        key = f"{macro.__self__.folders} {name} {spec}"
        if key not in results:
            results[key] = method(macro, spec, name, zone)
        return results[key]

    return call


def _remembered_parser(method: Callable[[], Any]) -> Callable[[], Any]:
    """The method, called once for each environment that defaults of flags come from."""
    results: dict[object, Any] = {}

    def call() -> Any:
        key = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("RUNNER_")))
        if key not in results:
            results[key] = method()
        return results[key]

    return call


@pytest.fixture(scope="module")
def lean() -> Iterator[None]:
    """Offers the formats in tests/formats to the projects of this process's commands."""

    def with_ours(root: Path | None, name: str) -> tuple[Path, ...]:
        ours = (Path(__file__).parent / "formats",) if name == "formats" else ()
        return (*ours, *project_folders(root, name))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runner.project.project.project_folders", with_ours)
        patch.setattr("runner.commands.workspace.project_folders", with_ours)
        yield


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes files, given as path -> text, into an empty folder and goes there; project.yml has one source unless it is
    given.
    """

    def write(files: Mapping[str, str | bytes] = {}) -> Path:
        for name, content in {"project.yml": PROJECT, **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return write


@pytest.fixture
def runner(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Runs a command as the command line does: exit code, standard output, standard error."""
    for name in ("RUNNER_TARGET", "RUNNER_PROJECT_DIR", "RUNNER_TARGET_PATH", "RUNNER_LOG_FORMAT"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str) -> Ran:
        capsys.readouterr()
        try:
            code = main(words)
        except SystemExit as left:  # --help and --version
            code = int(left.code or 0)
        return Ran(code, *capsys.readouterr())

    return run
