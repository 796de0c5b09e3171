"""debug: checks in one table that everything is there that a run needs."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from runner.commands.arguments import Call
from runner.commands.session import open_spark, spark_log
from runner.counts import counted, grouped
from runner.errors import RunnerError, RunnerErrors, errors_in
from runner.files import is_uri
from runner.project.inputs import Source, Target
from runner.project.nodes import Project
from runner.report import Report
from runner.run.workspace import ProjectArguments, Workspace, read_project_of

if TYPE_CHECKING:
    from runner.engine.session import Spark

OLDEST_JAVA = 17
INSTALL_JAVA = f"install Java {OLDEST_JAVA} or later, and put it in PATH or in JAVA_HOME"
SECONDS_FOR_JAVA = 60
# The bytes on a disk without which no run can be expected to end.
LEAST_SPACE = 100_000_000
# If the variable is set, Spark does not look at the setting.
LOCAL_DIR, LOCAL_DIRS = "spark.local.dir", "SPARK_LOCAL_DIRS"
GOOD, WRONG, UNKNOWN = "ok", "WRONG", "-"


@dataclass(frozen=True)
class Finding:
    """The result of one check. `what` is the thing that a run needs, `state` says if it is right, `found` describes it,
    and `to_do` says what to do if it is wrong.
    """

    what: str
    state: str
    found: str
    to_do: str = ""


def debug(call: Call) -> int:
    """Prints a table of all that a run needs. The exit code is 1 if a check is wrong."""
    findings, report = list(_findings(call)), call.report
    redacted = report.secrets.redacted
    rows = [
        {"check": one.what, "is": one.state, "found": redacted(one.found), "to do": redacted(one.to_do)}
        for one in findings
    ]
    report.table(list(rows[0]), rows)
    wrong = sum(one.state == WRONG for one in findings)
    report.payload(f"{wrong} of {counted(len(findings), 'check')} wrong" if wrong else "all good")
    return 1 if wrong else 0


def _findings(call: Call) -> Iterator[Finding]:
    """Yields the results of all checks: a thing that is wrong keeps no other from being checked."""
    yield Finding("Python", GOOD, f"{platform.python_version()} at {sys.executable}")
    project, findings = _project(call.project)
    target = project.target if project else None
    yield from _packages(bool(target and target.remote))
    if not (target and target.remote):
        yield _java(call.environment.get("JAVA_HOME"))
    yield from findings
    yield from _spaces(target, call.environment.get(LOCAL_DIRS)) if target else ()
    yield from _with_spark(project, call.report)


def _packages(with_connect: bool) -> Iterator[Finding]:
    found = list(packages(with_connect))
    for package in found:
        needs = f"pip install '{package.name}{package.wanted}'"
        text = f"{package.installed or 'not installed'}, needed is {package.wanted or 'any'}"
        yield Finding(f"package {package.name}", *((GOOD, text) if package.is_right else (WRONG, text, needs)))
    if not found:
        yield Finding("packages", UNKNOWN, "the runner was not installed as a package, which would name them")


def _java(home: str | None) -> Finding:
    """Checks the Java that Spark would start with."""
    path = f"{home}/bin/java" if home else shutil.which("java")
    if not path or not Path(path).is_file():
        return Finding("Java", WRONG, f'there is no "{path}"' if path else "no java in PATH", INSTALL_JAVA)
    try:
        ran = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=SECONDS_FOR_JAVA)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("Java", WRONG, f"{path} does not run: {error}", INSTALL_JAVA)
    number = re.search(r'version "((\d+)[^"]*)"', ran.stdout + ran.stderr)
    if not number:
        return Finding("Java", WRONG, f"{path} does not tell its version", INSTALL_JAVA)
    found = f"{number[1]} at {path}"
    return Finding("Java", *((GOOD, found) if int(number[2]) >= OLDEST_JAVA else (WRONG, found, INSTALL_JAVA)))


def _project(arguments: ProjectArguments) -> tuple[Project | None, list[Finding]]:
    """Returns the project, None if its project.yml is wrong, and the results of checking it."""
    try:
        project = read_project_of(arguments)
    except (RunnerError, RunnerErrors) as mistake:
        return None, [_mistake("project", error) for error in errors_in(mistake)]
    target = project.target
    where = "a server of Spark Connect" if target.remote else target.spark.get("spark.master", "local[*]")
    named = Finding("target", GOOD, f"{target.name}: {target.storage} in {target.path}, Spark at {where}")
    file = Finding("project", GOOD, str(project.root / "project.yml"))
    try:
        nodes = Workspace(arguments).graph.nodes.values()
    except (RunnerError, RunnerErrors) as mistake:
        return project, [file, named, *(_mistake("models", error) for error in errors_in(mistake))]
    models = sum(node.model is not None for node in nodes)
    return project, [
        file,
        named,
        Finding("models", GOOD, f"{counted(models, 'model')} of {counted(len(nodes), 'node')}"),
    ]


def _spaces(target: Target, local_dirs: str | None = None) -> Iterator[Finding]:
    """Checks the space on the disks of this machine that a run writes to."""
    places = {} if is_uri(target.path) else {"space for tables": target.path}
    if not target.remote:
        folders = (local_dirs or target.spark.get(LOCAL_DIR, tempfile.gettempdir())).split(",")
        places |= {f"space for Spark{f' {number}' if number > 1 else ''}": one for number, one in enumerate(folders, 1)}
    place_of_spark = LOCAL_DIRS if local_dirs else LOCAL_DIR
    for what, place in places.items():
        folder = Path(place).absolute()
        nearest = next(one for one in (folder, *folder.parents) if one.exists())
        space = shutil.disk_usage(nearest)
        if not space.total:  # a file system of the kernel's own, and some that lie behind a network
            yield Finding(what, UNKNOWN, f"the file system of {place} does not tell its size")
            continue
        found = f"{grouped(space.free // 1_000_000)} MB free for {place}"
        to_do = f"make space there, or choose another folder: {'path' if what.endswith('tables') else place_of_spark}"
        yield Finding(what, *((GOOD, found) if space.free >= LEAST_SPACE else (WRONG, found, to_do)))


def _mistake(what: str, error: RunnerError) -> Finding:
    where = f"{error.where}: " if error.where else ""
    return Finding(what, WRONG, f"{where}{error.message}", error.hint or "correct it: docs/errors.md")


# --- what only Spark can tell


def _with_spark(project: Project | None, report: Report) -> Iterator[Finding]:
    folder = Path(tempfile.gettempdir()) / "runner-debug"
    target = project.target if project else Target("debug", str(folder))
    log = spark_log(project) if project else folder / "logs" / "spark.log"
    began = time.monotonic()
    try:
        with open_spark(target, log, None, report, is_small_job=True) as spark:
            yield Finding("Spark", GOOD, f"{spark.session.version}, there in {time.monotonic() - began:.1f}s")
            if not target.remote:
                yield _classes()
            if project:
                yield from _reached(spark, project, report)
    except RunnerError as error:
        yield _mistake("Spark", error)
        for source in project.sources if project else ():
            yield Finding(f"source {source.name}", UNKNOWN, "not looked for: it needs Spark")


def _classes() -> Finding:
    from runner.engine.archive import archive

    if (file := archive()).is_file():
        return Finding("classes", GOOD, str(file))
    return Finding("classes", GOOD, "not in an archive", "`runner prepare`, once: each run starts some seconds sooner")


def _reached(spark: Spark, project: Project, report: Report) -> Iterator[Finding]:
    from runner.engine.connectivity import messages_found, schema_found, tables_found

    catalog = project.target.catalog
    with report.during("looking at the tables"):
        yield _tried("tables", lambda: tables_found(spark), 'correct "path" of the target, or its rights')
    if catalog:
        with report.during("asking the catalog"):
            name, to_do = f"catalog {catalog.name}.{catalog.schema}", 'correct "catalog" of the target, or its settings'
            yield _tried(name, lambda: schema_found(spark, catalog), to_do)

    for source in project.sources:
        with report.during(f"looking at {source.name}"):
            yield _tried(f"source {source.name}", lambda: messages_found(spark, source.messages), _to_do(source))  # noqa: B023


def _to_do(source: Source) -> str:
    key = "kafka" if source.messages.topics else "table" if source.messages.kind.endswith("table") else "files"
    return f'correct "{key}" of the source, or see that this machine can reach it'


def _tried(what: str, find: Callable[[], str], to_do: str) -> Finding:
    from runner.engine.errors import QueryFailed

    try:
        found = find()
    except QueryFailed as failure:
        return Finding(what, WRONG, failure.message, to_do)
    return Finding(what, UNKNOWN if found.startswith("not looked for") else GOOD, found)


DISTRIBUTION = "changelog-runner"


@dataclass(frozen=True)
class Package:
    """A package that the runner needs. `wanted` are the versions that would do, `installed` is the installed version,
    None if there is none.
    """

    name: str
    wanted: str
    installed: str | None

    @property
    def is_right(self) -> bool:
        """True if the installed version is one of the wanted ones.

        >>> [Package("a", ">=3.1,<4", installed).is_right for installed in ("3.1.6", "4.0", "3.2rc1", None)]
        [True, False, True, False]
        """
        return self.installed is not None and SpecifierSet(self.wanted).contains(self.installed, prereleases=True)


def packages(with_connect: bool) -> Iterator[Package]:
    """Yields the packages that the runner needs, with those for Spark Connect or without; nothing if the runner itself
    is not installed.
    """
    try:
        needs = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return
    for need in map(Requirement, needs):
        if not need.marker or need.marker.evaluate({"extra": "connect" if with_connect else ""}):
            wanted = ",".join(sorted(map(str, need.specifier), reverse=True))
            yield Package(need.name, wanted, _installed(need.name))


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
