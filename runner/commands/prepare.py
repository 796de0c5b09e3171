"""prepare: keeps the classes of Spark in an archive, so that Java loads them sooner."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from runner.commands.arguments import Call, RunArguments
from runner.commands.init import sample
from runner.commands.run import run
from runner.errors import RunnerError
from runner.report import Report
from runner.run.workspace import ProjectArguments

SECONDS_TO_WRITE = 300.0
CHARACTERS_OF_LOG = 500
MEGABYTE = 1e6


def prepare(call: Call) -> int:
    """Builds the sample project in a folder that is gone afterwards, and writes the archive of all classes that the
    build has loaded. Does nothing else if the archive is there.
    """
    if "pyspark" in sys.modules:
        from runner.engine.start import has_jvm

        if has_jvm():
            raise RunnerError("prepare", "this process has a Spark already", hint="run it in a process of its own")
    from runner.engine.archive import archive

    file = archive()
    if file.exists():
        call.report.say(f"is there: {file}")
        return 0
    file.parent.mkdir(parents=True, exist_ok=True)
    # The archive is renamed when it is whole: another process that starts meanwhile must not read half of it.
    with TemporaryDirectory(dir=file.parent) as folder:
        _write(Path(folder) / "classes.jsa", Path(folder) / "sample", call.report)
        os.replace(Path(folder) / "classes.jsa", file)
    for other in file.parent.glob("classes-*.jsa"):
        if other != file:
            other.unlink(missing_ok=True)
    call.report.say(f"wrote {file} ({file.stat().st_size / MEGABYTE:.0f} MB)")
    return 0


def _write(file: Path, root: Path, report: Report) -> None:
    """Writes the archive of a process that builds a sample project."""
    from runner.engine.archive import writing
    from runner.engine.start import DEFAULT_OPTIONS, end_jvm

    (root / "project.yml").write_text(sample(root, {DEFAULT_OPTIONS: writing(file)}), encoding="utf-8")
    project = ProjectArguments(root, "local", target_path=root / "target")
    with report.during("preparing Spark", is_said=True):
        try:
            exit_code = run(RunArguments(project), Report(quiet=True))
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
