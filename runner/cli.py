"""The command line: arguments in, exit code out. 0: all good; 1: something ran and failed; 2: nothing could run."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

import click

from runner.commands.arguments import TRIGGER, Call
from runner.commands.flags import COMMON, HELP, SELECTION, Command, Group, argument, completed, option, shared
from runner.errors import RunnerError, RunnerErrors, errors_in
from runner.run.results import INTERRUPTED, Result


@dataclass(frozen=True)
class Invocation:
    """The outcome of a command. `results` has one result for each node that the command worked on, in the order in
    which they ended. `exception` is the mistake that kept the command from running, or None. `output` is what the
    command has printed to standard output, if that was kept.
    """

    exit_code: int
    results: tuple[Result, ...] = ()
    exception: BaseException | None = None
    output: str = ""

    @property
    def success(self) -> bool:
        return self.exit_code == 0


# --- commands, in the order of help

CONTINUOUS = (
    "land messages as they arrive, until Ctrl-C or SIGTERM: the first signal lets the batch in flight end, the second "
    "ends it"
)
ON_TRIGGER = f"with --continuous: the time from batch to batch, such as 500ms, 10s, 2m (default: {TRIGGER})"
ON_PORT = "with --continuous: serve metrics at /metrics of this port"
WATCH_SECONDS = 5
WATCHING = f"print it again and again until Ctrl-C, so many seconds apart (without a number: {WATCH_SECONDS})"
NO_ROWS = "land nothing, and build models as if all that they read had no rows: it replaces tables by empty ones"
KEPT = "remove rows of changelogs that landed more than N days ago (default: remove none)"
INLINE = "compile this SQL (with ref, source, var and macros) instead of models, and print it"
WORDS = "the name of a format (default: the one that fits), and a file of messages, or - for standard input"
OUTPUT = "how to print the rows (default: table on a terminal, else json); case: as the NAME.rows.yml of a case"
FORMATS = (
    "list all formats, show NAME with what it inherits, check NAME or all, diff two formats or files of specs, print "
    "the JSON Schema of specs, infer which format the messages in FILES have, or write a draft of one"
)
SCHEMA = "the Avro schema of the messages, or a folder of schemas NUMBER.avsc; may be given more than once"
FROM_DBT = "the folder of a project of dbt: writes the project.yml that takes the place of its dbt_project.yml"
NAMES = "the name of a format; diff: two names, or files of specs; infer: files of messages, or - for standard input"
PATTERN = "a pattern of your own files, in quotes (default: messages of a sample, with a model and tests)"
LINE = "print the script for this shell; candidates: print what could stand at the end of LINE, as the scripts ask"
AGAINST = "the database, jdbc:KIND://HOST/DATABASE, or a file or folder of files with the rows of its tables"
DEAD_LETTERS = (
    "list groups that look alike, show ID with its text, try what the formats make of them now, land those that they "
    "understand now, waive a group in project.yml, export them to a file that parse reads"
)
LETTER = "the id of a message or of a group; with export: the file to write"
CHANGED = (
    "a column with the time at which a row was last changed: rows that changed after what mirrors know are left out"
)
OUTPUTS = ("name", "path", "selector", "json")
RESOURCE_TYPES = ("source", "seed", "model", "test", "unit_test", "exposure")

DEFER = option("--defer", "read tables that are neither selected nor here where the run of --state has written them")
FULL_REFRESH = option("-f --full-refresh", "drop changelogs and read all messages again; rebuild incremental models")
EXECUTING = (
    *SELECTION,
    option("-x --fail-fast", "start nothing more after the first failure"),
    option("--threads N", "how many models and tests run at the same time (default: 4)", int, default=4),
    DEFER,
)
ACCEPT_LOSS = option(
    "--accept-loss", "with --full-refresh: drop changelogs also if their messages are not all there any more"
)
BUILDING = (*EXECUTING, FULL_REFRESH, ACCEPT_LOSS, option("--empty", NO_ROWS))
METRICS = option("--metrics FILE", "write metrics to this file as OpenMetrics text, after the run and each batch", Path)
OF_MESSAGES = (
    shared("--zone ZONE", 'the time zone of local times, as "zone" of a source'),
    shared("--schema FILE", SCHEMA, Path, multiple=True),
)

COMMANDS = (
    Command(
        *("run", "run:execute", "land new messages and build models", *BUILDING),
        METRICS,
        option("--continuous", CONTINUOUS),
        option("--trigger TIME", ON_TRIGGER),
        option("--metrics-port N", ON_PORT, int),
        option("--metrics-host HOST", "with --metrics-port: the address to listen at (default: 127.0.0.1)"),
    ),
    Command(
        *("test", "run:execute", "run data tests, unit tests and cases of formats", *EXECUTING, METRICS),
        option("--unit unit_only", "run only unit tests and cases of formats"),
        option("--data data_only", "run only data tests"),
    ),
    Command("seed", "run:execute", "load the files in seeds/", *EXECUTING, FULL_REFRESH),
    Command(
        *("build", "run:execute", "load seeds, land new messages, build models and run tests, in order", *BUILDING),
        METRICS,
    ),
    Command("retry", "run:retry", "run again what failed in the last run, and what was skipped"),
    Command(
        *(
            "maintain",
            "tables:maintain",
            "compact tables, remove old rows, old versions and leftover files",
            *SELECTION,
        ),
        option("--keep-days N", KEPT, int),
        option(
            "--history-days N", "for how many days old versions of tables stay readable (default: 7)", int, default=7
        ),
    ),
    Command(
        *("compile", "inspect:compile_", "write the SQL of models to target/compiled", *SELECTION),
        option("--inline SQL", INLINE),
        option("--runnable", "print the SQL, after the settings and functions that it needs"),
    ),
    Command("check", "inspect:check", "read and compile everything, report all mistakes"),
    Command(
        *("ls", "inspect:ls", "list sources, models and tests", *SELECTION),
        option("--output", "what to print of each node (default: name)", OUTPUTS, default="name"),
        option("--resource-type", "list only nodes of this type", RESOURCE_TYPES),
        option("--orphans", "list the tables that the project has written and no node has any more"),
    ),
    Command(
        *("state", "state:state", "list the tables of the target: size, how far each has read, what waits"),
        option("--output", "how to print it (default: table)", ("table", "json"), default="table"),
    ),
    Command(
        *("copy", "copy", "copy tables, with all that runs go on from, into another target: a move, or a backup"),
        *SELECTION,
        option("--to TARGET", "the target of project.yml to copy into", required=True),
        option("--dry-run", "write nothing, and say what would be copied"),
        option("--output", "how to print the tables (default: table)", ("table", "json"), default="table"),
    ),
    Command(
        *("erase", "erase:erase", "remove the rows of one key from all that is kept, and keep them out"),
        option("--table TABLE", "the table, such as shop.customers or customers"),
        option("--key KEY", "the key: a column and its value, id=7, or all columns as JSON"),
        option("--source NAME", "only from this source (default: all that have the table)"),
        option("--because TEXT", "why; stands in the certificate"),
        option("--purge", "remove old versions and files too, and search all files for what is left"),
        option("--resume", "finish an erase that was interrupted"),
        option("--dry-run", "only say what would be removed"),
        option("--output", "how to print the certificate (default: table)", ("table", "json"), default="table"),
    ),
    Command(
        *("rename", "rename:rename", "give a table the name that its source, mirror or model has in the project now"),
        argument("old", "the name that it had", metavar="OLD"),
        argument("new", "the name that it has now", metavar="NEW"),
        option("--dry-run", "only say which tables would get other names"),
    ),
    Command(
        *("status", "status:status", "say whether all is well, and why not; exit code 1 if not", *SELECTION),
        option("--output", "how to print it (default: table)", ("table", "json"), default="table"),
        option("--watch SECONDS", WATCHING, int, is_flag=False, flag_value=WATCH_SECONDS),
    ),
    Command(
        *("show", "tables:show", "show the first rows of a model or query", *SELECTION, DEFER),
        option("--inline SQL", "show the rows of this query instead of a model's"),
        option("--limit N", "show at most N rows (default: 10)", int, default=10),
        option("--output", "how to print the rows (default: table)", ("table", "json"), default="table"),
    ),
    Command(
        *("docs", "inspect:docs", "write a page about everything in the project"),
        argument("action", "write target/docs/index.html", ("generate",)),
        option("--no-tables", "start no Spark: the page says nothing of what has landed"),
    ),
    Command(
        *("parse", "parse", "show the changelog rows of a file of messages", *OF_MESSAGES),
        argument("words", WORDS, metavar="[FORMAT] FILE", nargs=-1, required=True, shell_complete=completed("formats")),
        option("--kind", "show only rows of this kind", ("row", "ddl", "control", "dead_letter")),
        option("--limit N", "show at most N rows (default: all)", int),
        option("--output", OUTPUT, ("table", "json", "case")),
    ),
    Command(
        *("formats", "formats", "list formats, show one with what it inherits, check and compare them", *OF_MESSAGES),
        argument("action", FORMATS, ("list", "show", "check", "diff", "schema", "infer")),
        argument("words", NAMES, metavar="[NAME]...", nargs=-1, shell_complete=completed("formats")),
        option(
            "--messages FILE",
            "a file of messages; with check NAME: warns of what no row of them has; with diff: compares their rows",
        ),
        option(
            "--cases NAME",
            "with diff: the messages of this format's cases (default: those of both, and of what both extend)",
        ),
        option("--output", "with diff: how to print the differences (default: table)", ("table", "json")),
        option("--name NAME", "with infer: write a draft of this name, also if a known format fits"),
    ),
    Command(
        *("source", "tables:freshness", "measure how old the newest row of each source is", *SELECTION),
        argument("action", "measure the selected sources, and write target/sources.json", ("freshness",)),
    ),
    Command(
        *(
            "mirrors",
            "mirrors:mirrors",
            "write mirrors of tables that have landed; compare mirrors with what has landed",
        ),
        argument("action", "write mirrors of the tables that have landed, or show what they lack", ("suggest", "diff")),
        option("--source NAME", "only tables of this source (default: all)", shell_complete=completed("sources")),
        option("--table TABLE", "only tables of this name, such as shop.orders or orders"),
        option("--files", "write a file for each table, in place of one rule for all tables of a source"),
        option("--apply", "change mirrors that are there to what the data has"),
    ),
    Command(
        *(
            "verify",
            "verify:verify",
            "compare mirrors with the tables of their database, which is only read",
            *SELECTION,
        ),
        option("--against PLACE", AGAINST, required=True),
        option("--user NAME", "the user of the database"),
        option("--password-env NAME", "the environment variable with the password of the user"),
        option("--changed-column NAME", CHANGED),
        option(
            "--parallel N", "how many queries may run in the database at the same time (default: 1)", int, default=1
        ),
        option("--rows N", "about how many rows a query reads of a table (default: 1000000)", int, default=1_000_000),
        option("--show-values", "keep the values that differ in the table of differences, not only keys and columns"),
        option("--repair", "write the rows that differ as the database has them, for the next run to land"),
        option("--dry-run", "with --repair: write nothing, and say what would be written"),
        option("--taken-at INSTANT", "with --repair: when the rows were as the files have them"),
    ),
    Command(
        *("dead-letters", "dead_letters:dead_letters", "look at messages that could not be understood, and land them"),
        argument(
            "action", DEAD_LETTERS, ("list", "show", "try", "land", "waive", "export"), required=False, default="list"
        ),
        argument("word", LETTER, metavar="[ID|FILE]", required=False),
        option("--source NAME", "only of this source (default: all)", shell_complete=completed("sources")),
        option("--reason REASON", "only those with this reason"),
        option("--table TABLE", "only those of this table, as far as they name one"),
        option("--since TIME", "only those that have landed since a day or an instant"),
        option("--as-case NAME", "with export: write a case of the format, with what the messages are now"),
        option("--because TEXT", "with waive: why these dead letters are expected"),
        option("--until DAY", "with waive: the last day on which they are"),
        option("--dry-run", "with land: only say what would land, as try does"),
        option("--open", "with show and export: texts that are sealed as they came, which needs the secret for masks"),
        option("--output", "how to print the rows (default: table)", ("table", "json"), default="table"),
    ),
    Command(
        *("reprocess", "reprocess:reprocess", "read kept messages again with the spec as it is now, and exchange rows"),
        argument("source", "the name of a source", metavar="SOURCE", shell_complete=completed("sources")),
        option("--table TABLE", "only messages with a row of this table"),
        option("--reason REASON", "only messages with a dead letter of this reason"),
        option("--from from_ TIME", "only messages that have landed since a day or an instant"),
        option("--to TIME", "only messages that have landed before a day or an instant"),
        option("--stale", "only messages whose rows an earlier spec has made"),
        option("--dry-run", "only show which rows would be otherwise"),
        option("--output", "how to print the rows (default: table)", ("table", "json"), default="table"),
    ),
    Command(
        *("init", "init", "start a new project", *OF_MESSAGES),
        argument("name", "the folder of the new project", required=False),
        option("--from-dbt FOLDER", FROM_DBT, Path),
        option(
            "--format FORMAT", "the format of your files: see runner formats list", shell_complete=completed("formats")
        ),
        option("--files PATTERN", PATTERN),
    ),
    Command("debug", "debug", "check that all is there that a run needs: Java, Spark, packages, project, sources"),
    Command(
        "prepare", "debug:prepare", "keep the classes of Spark in an archive, once: each run starts some seconds sooner"
    ),
    Command(
        *("completion", "completion", "print the script with which a shell completes commands"),
        argument("shell", LINE, ("bash", "zsh", "fish", "candidates")),
        argument("line", "a command line up to the cursor", required=False, default=""),
    ),
    Command(
        *("clean", "clean:clean", "remove what the runner wrote to target/, or tables that no node has any more"),
        option("--orphans", "remove the tables that ls --orphans lists, after a question, and leave target/ as it is"),
        option("--yes", "with --orphans: ask no question"),
    ),
)


@click.group(
    *("runner", Group),
    params=[*COMMON],
    commands=COMMANDS,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"max_content_width": 120},
)
@HELP
@click.version_option(package_name="changelog-runner", message="%(prog)s %(version)s", help="show the version and exit")
@click.pass_context
def runner(context: click.Context) -> None:
    """Lands vendors' change messages in one changelog on Spark, builds models on it and tests them."""
    if not context.invoked_subcommand:
        raise RunnerError("usage", "the following arguments are required: COMMAND", hint="runner --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code; it prints to standard output and standard error."""
    try:
        return execute(argv).exit_code
    except BrokenPipeError:
        sys.stdout = None  # its reader is gone: Python must not flush it at exit
        return 0


def execute(argv: Sequence[str] | None, stdout: TextIO | None = None) -> Invocation:
    """Runs a command and returns how it went; reports that on standard error too; data go to `stdout`."""
    call = Call(os.environ, stdout)
    try:
        with runner.make_context("runner", list(sys.argv[1:] if argv is None else argv), obj=call) as context:
            return Invocation(runner.invoke(context), call.report.results)
    except click.exceptions.Exit as end:  # --help and --version
        return Invocation(end.exit_code)
    except BrokenPipeError:
        raise
    except (RunnerError, RunnerErrors, OSError) as mistake:
        for error in errors_in(mistake):
            call.report.error(error)
            if call.flags.get("debug"):
                call.report.debug("".join(traceback.format_exception(error)).rstrip())
        return Invocation(2, exception=mistake)
    except KeyboardInterrupt as interrupt:
        call.report.interrupted()
        return Invocation(INTERRUPTED, call.report.results, interrupt)
    except Exception as bug:
        call.report.bug(traceback.format_exc())
        return Invocation(1, call.report.results, bug)
    finally:
        call.report.close()


# --- commands run from Python: when one has ended, nothing is left of it but the files that it has written

# A process has one JVM, so commands of several threads run one after the other.
ONE_AT_A_TIME = threading.RLock()


def invoked(arguments: Sequence[str]) -> Invocation:
    """Runs a command in this process. A session of Spark that is there is used, and left as it is; a session that has
    to be started is stopped, with its JVM. Raises KeyboardInterrupt when a signal has ended the command.
    """
    output = io.StringIO()
    with ONE_AT_A_TIME, _signals_kept(), _own_jvm_ended():
        outcome = execute([*arguments], output)
    if isinstance(outcome.exception, KeyboardInterrupt):
        raise outcome.exception
    return replace(outcome, output=output.getvalue())


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Makes Ctrl-C do after the block what it did before: a new session of Spark changes that, in the main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if is_main else None
    try:
        yield
    finally:
        if before:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _own_jvm_ended() -> Iterator[None]:
    """Ends the JVM that was started in the block: the next command may need another, with other packages."""
    had_jvm = _has_jvm()
    try:
        yield
    finally:
        if not had_jvm and _has_jvm():
            from runner.engine.start import end_jvm

            end_jvm()


def _has_jvm() -> bool:
    if "pyspark" not in sys.modules:
        return False
    from runner.engine.start import has_jvm

    return has_jvm()


if __name__ == "__main__":
    sys.exit(main())
