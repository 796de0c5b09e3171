"""Small projects in temporary folders, and the command line in this process."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pytest
from hypothesis import HealthCheck, settings

from runner.cli import main
from runner.compile.query import compile_format
from runner.project.project import project_folders
from runner.run import notifications
from runner.sandbox import TracingSandbox
from tests.answers import Server
from tests.sparks import WITHOUT_ICEBERG

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
ICEBERG_STORAGES = {"iceberg", "rest", "database"}
ENGINE_STORAGES = {"delta", *ICEBERG_STORAGES}
# In a test without parameters.
USES_ICEBERG = re.compile(r"storage: iceberg|Iceberg\.")


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
        if WITHOUT_ICEBERG and _uses_iceberg(item):
            item.add_marker(pytest.mark.skip(reason=WITHOUT_ICEBERG))


def _uses_iceberg(item: pytest.Item) -> bool:
    """By its parameters or, if it starts a JVM, by its own lines."""
    if _values(item) & ICEBERG_STORAGES:
        return True
    marked = item.get_closest_marker("engines") or item.get_closest_marker("spark")
    return bool(marked and isinstance(item, pytest.Function) and USES_ICEBERG.search(inspect.getsource(item.function)))


def _values(item: pytest.Item) -> set[str]:
    """The texts among the values of parameters."""
    call = getattr(item, "callspec", None)
    return {value for value in call.params.values() if isinstance(value, str)} if call else set()


@pytest.fixture(scope="session", autouse=True)
def compiled_once() -> Iterator[None]:
    """Most of the time of a command in this process would go into compiling the same macros and the same formats."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("compile", "parse"):
            patch.setattr(jinja2.Environment, name, _once(getattr(jinja2.Environment, name), _template))
        patch.setattr("runner.commands.formats.compile_format", _once(compile_format, _built_in_format))
        yield


def _once(function: Callable[..., Any], key_of: Callable[..., object]) -> Callable[..., Any]:
    """The function, called once for each key that its arguments have, and always where they have none."""
    results: dict[object, Any] = {}

    def call(*arguments: Any, **named: Any) -> Any:
        key = key_of(*arguments, **named)
        if key is None:
            return function(*arguments, **named)
        if key not in results:
            results[key] = function(*arguments, **named)
        return results[key]

    return call


def _template(environment: jinja2.Environment, *arguments: Any, **named: Any) -> object:
    """All environments are alike, except those that trace."""
    return None if isinstance(environment, TracingSandbox) else (arguments, tuple(sorted(named.items())))


def _built_in_format(macro: Any, spec: Any, name: str, zone: None) -> object:
    """Macros of a project may print something else."""
    folders = macro.__self__.folders
    return f"{folders} {name} {spec}" if len(folders) == 1 else None


@pytest.fixture(scope="module")
def lean() -> Iterator[None]:
    """Offers the formats in tests/formats to the projects of this process's commands."""

    def with_ours(root: Path | None, name: str) -> tuple[Path, ...]:
        ours = (Path(__file__).parent / "formats",) if name == "formats" else ()
        return (*ours, *project_folders(root, name))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runner.project.project.project_folders", with_ours)
        patch.setattr("runner.run.workspace.project_folders", with_ours)
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
        return Ran(main(words), *capsys.readouterr())

    return run


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    """Starts servers that answer with these codes."""
    servers: list[Server] = []
    for variable in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(notifications, "PAUSE", 0.01)

    def start(*codes: int) -> Server:
        servers.append(Server(*codes))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
