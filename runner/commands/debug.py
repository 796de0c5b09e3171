"""debug, prepare: check in one table that everything is there that a run needs, and keep the classes of Spark in an
archive, so that Java loads them sooner.
"""

from __future__ import annotations

import os
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
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from runner.commands.arguments import Call, RunArguments
from runner.commands.session import open_spark, spark_log
from runner.counts import counted, grouped
from runner.errors import RunnerError, RunnerErrors, errors_in
from runner.files import is_uri
from runner.patterns import matching
from runner.project.inputs import Catalog, Messages, Source, Target
from runner.project.nodes import Project
from runner.render import name as quoted
from runner.report import Report
from runner.run.inventory import LOCAL_DIRS, disks
from runner.run.workspace import ProjectArguments, Workspace, read_project_of

if TYPE_CHECKING:
    from runner.engine.session import Spark

DISTRIBUTION = "changelog-runner"
OLDEST_JAVA = 17
INSTALL_JAVA = f"install Java {OLDEST_JAVA} or later, and put it in PATH or in JAVA_HOME"
SECONDS_FOR_JAVA = 60
SECONDS_TO_WRITE = 300.0
CHARACTERS_OF_LOG = 500
MEGABYTE = 1e6
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
    """Checks the packages that the runner needs, with those for Spark Connect or without."""
    try:
        needs = [*map(Requirement, requires(DISTRIBUTION) or [])]
    except PackageNotFoundError:
        needs = []
    extra = {"extra": "connect" if with_connect else ""}
    needs = [need for need in needs if not need.marker or need.marker.evaluate(extra)]
    for need in needs:
        installed, wanted = _installed(need.name), ",".join(sorted(map(str, need.specifier), reverse=True))
        found, to_do = (
            f"{installed or 'not installed'}, needed is {wanted or 'any'}",
            f"pip install '{need.name}{wanted}'",
        )
        is_right = _is_right(installed, need.specifier)
        yield Finding(f"package {need.name}", *((GOOD, found) if is_right else (WRONG, found, to_do)))
    if not needs:
        yield Finding("packages", UNKNOWN, "the runner was not installed as a package, which would name them")


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _is_right(installed: str | None, wanted: SpecifierSet) -> bool:
    """Returns True if the installed version is one of the wanted ones.

    >>> [_is_right(installed, SpecifierSet(">=3.1,<4")) for installed in ("3.1.6", "4.0", "3.2rc1", None)]
    [True, False, True, False]
    """
    return installed is not None and wanted.contains(installed, prereleases=True)


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
    for disk in disks(target, local_dirs):
        what = f"space for {disk.what}"
        if disk.free is None:
            yield Finding(what, UNKNOWN, f"the file system of {disk.place} does not tell its size")
            continue
        found = f"{grouped(disk.free // 1_000_000)} MB free for {disk.place}"
        yield Finding(what, *((WRONG, found, disk.to_do) if disk.is_full else (GOOD, found)))


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
    from runner.engine.start import archive

    if (file := archive()).is_file():
        return Finding("classes", GOOD, str(file))
    return Finding("classes", GOOD, "not in an archive", "`runner prepare`, once: each run starts some seconds sooner")


def _reached(spark: Spark, project: Project, report: Report) -> Iterator[Finding]:
    catalog = project.target.catalog
    with report.during("looking at the tables"):
        yield _tried("tables", 'correct "path" of the target, or its rights', _tables_found, spark)
    if catalog:
        with report.during("asking the catalog"):
            name, to_do = f"catalog {catalog.name}.{catalog.schema}", 'correct "catalog" of the target, or its settings'
            yield _tried(name, to_do, _schema_found, spark, catalog)
    for source in project.sources:
        with report.during(f"looking at {source.name}"):
            yield _tried(f"source {source.name}", _to_do(source), _messages_found, spark, source.messages)


def _to_do(source: Source) -> str:
    messages = source.messages
    key = "kafka" if messages.topics else "table" if messages.kind.endswith("table") else "files"
    key = "jdbc" if messages.jdbc else key
    return f'correct "{key}" of the source, or see that this machine can reach it'


def _tried(what: str, to_do: str, find: Callable[..., str], *arguments: Any) -> Finding:
    from runner.engine.errors import QueryFailed

    try:
        found = find(*arguments)
    except QueryFailed as failure:
        return Finding(what, WRONG, failure.message, to_do)
    return Finding(what, UNKNOWN if found.startswith("not looked for") else GOOD, found)


def _messages_found(spark: Spark, messages: Messages) -> str:
    """Returns in words how many messages or files of a source are found; raises QueryFailed if there are none, or no
    answer.
    """
    from runner.engine.errors import QueryFailed, query_errors
    from runner.engine.kafka import topics_now
    from runner.engine.messages import STORED_AS

    if messages.jdbc:
        return "not looked for: the first run asks the database"
    if messages.topics:
        now = topics_now(spark, messages.topics, ())
        if not now:
            return "not looked for: only the server of Spark Connect can reach Kafka"
        return f"{counted(len(now.ids), 'topic')}, {counted(now.left({}), 'message')}"
    if pattern := messages.local_pattern:
        files = [path for path in matching(pattern) if os.access(path, os.R_OK)]
        if not files:
            raise QueryFailed(f'nothing that can be read matches "{messages.path}"')
        return counted(len(files), "file")
    with query_errors():
        # This only lists the files.
        frame = spark.session.read.format(STORED_AS[messages.kind]).load(messages.path)
        return counted(len(frame.inputFiles()), "file")


def _tables_found(spark: Spark) -> str:
    """Returns in words whether the place of the tables is there; raises QueryFailed if nothing can be written there."""
    from runner.engine.errors import QueryFailed, query_errors
    from runner.engine.files import files_of

    path = spark.target.path
    if is_uri(path):
        with query_errors():
            return "there" if files_of(spark, spark.target).exists(path) else "will be created"
    nearest = next(folder for folder in (Path(path), *Path(path).parents) if folder.exists())
    try:
        # Access rights do not tell everything: a disk may be read-only.
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        raise QueryFailed(f'nothing can be written to "{nearest}": {error.strerror}') from None
    return "there" if Path(path).exists() else "will be created"


def _schema_found(spark: Spark, catalog: Catalog) -> str:
    """Returns in words whether a schema is in its catalog; raises QueryFailed if the catalog does not answer."""
    from runner.engine.errors import query_errors

    with query_errors():
        is_there = spark.session.catalog.databaseExists(f"{quoted(catalog.name)}.{quoted(catalog.schema)}")
    return "there" if is_there else "will be created"


# --- prepare


def prepare(call: Call) -> int:
    """Builds the sample project in a folder that is gone afterwards, and writes the archive of all classes that the
    build has loaded. Does nothing else if the archive is there.
    """
    if "pyspark" in sys.modules:
        from runner.engine.start import has_jvm

        if has_jvm():
            raise RunnerError("prepare", "this process has a Spark already", hint="run it in a process of its own")
    from runner.engine.start import archive

    file = archive()
    if file.exists():
        call.report.say(f"is there: {file}")
        return 0
    file.parent.mkdir(parents=True, exist_ok=True)
    # The archive is renamed when it is whole: another process that starts meanwhile must not read half of it.
    with TemporaryDirectory(dir=file.parent) as folder:
        _write_archive(Path(folder) / "classes.jsa", Path(folder) / "sample", call.report)
        os.replace(Path(folder) / "classes.jsa", file)
    for other in file.parent.glob("classes-*.jsa"):
        if other != file:
            other.unlink(missing_ok=True)
    call.report.say(f"wrote {file} ({file.stat().st_size / MEGABYTE:.0f} MB)")
    return 0


def _write_archive(file: Path, root: Path, report: Report) -> None:
    """Writes the archive of a process that builds a sample project."""
    from runner.commands.init import sample
    from runner.commands.run import run_nodes
    from runner.engine.start import DEFAULT_OPTIONS, end_jvm, writing

    (root / "project.yml").write_text(sample(root, {DEFAULT_OPTIONS: writing(file)}), encoding="utf-8")
    project = ProjectArguments(root, "local", target_path=root / "target")
    with report.during("preparing Spark", is_said=True):
        try:
            exit_code = run_nodes("run", RunArguments(project), Report(quiet=True))
        except RunnerError as mistake:
            raise _not_written(mistake.message) from mistake
        end_jvm(SECONDS_TO_WRITE)
    if exit_code:
        raise _not_written("the sample project could not be built")
    if not file.exists():
        log = (root / "target" / "logs" / "spark.log").read_text(encoding="utf-8", errors="replace")
        raise _not_written(log.strip()[-CHARACTERS_OF_LOG:] or "it gave no reason")


def _not_written(why: str) -> RunnerError:
    hint = "runs work without an archive; `runner debug` says what else is wrong"
    return RunnerError("prepare", f"Java has written no archive of classes: {why}", hint=hint)
