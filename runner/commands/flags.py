"""The flags of commands."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from runner.commands.arguments import TRIGGER


def selection(parser: ArgumentParser) -> None:
    methods = (
        "NAME, NAME+, +NAME, @NAME, tag:X, path:X, file:X, source:X, format:X, resource_type:X, config.KEY:X, "
        "state:modified, result:error, selector:X"
    )
    select = f"the nodes to work on (default: all), in dbt's syntax: {methods}; may be given more than once"
    exclude = "the nodes to leave out, in the same syntax"
    parser.add_argument("-s", "--select", action="extend", nargs="+", default=[], metavar="SELECTOR", help=select)
    parser.add_argument("--exclude", action="extend", nargs="+", default=[], metavar="SELECTOR", help=exclude)
    saved = "the nodes of a selector in selectors.yml, in place of --select and --exclude"
    parser.add_argument("--selector", metavar="NAME", help=saved)
    state = "the target folder of an earlier run, with which state: compares"
    parser.add_argument("--state", type=Path, metavar="FOLDER", help=state)


def fail_fast(parser: ArgumentParser) -> None:
    parser.add_argument("-x", "--fail-fast", action="store_true", help="start nothing more after the first failure")


def threads(parser: ArgumentParser) -> None:
    help_text = "how many models and tests run at the same time (default: 4)"
    parser.add_argument("--threads", type=int, metavar="N", default=4, help=help_text)


def full_refresh(parser: ArgumentParser) -> None:
    help_text = "drop changelogs and read all messages again; rebuild incremental models"
    parser.add_argument("-f", "--full-refresh", action="store_true", help=help_text)


def empty(parser: ArgumentParser) -> None:
    help_text = "land nothing, and build models as if all that they read had no rows: it replaces tables by empty ones"
    parser.add_argument("--empty", action="store_true", help=help_text)


def defer(parser: ArgumentParser) -> None:
    help_text = "read tables that are neither selected nor here where the run of --state has written them"
    parser.add_argument("--defer", action="store_true", help=help_text)


def continuous(parser: ArgumentParser) -> None:
    continuous = (
        "land messages as they arrive, until Ctrl-C or SIGTERM: "
        "the first signal lets the batch in flight end, the second ends it"
    )
    trigger = f"with --continuous: the time from batch to batch, such as 500ms, 10s, 2m (default: {TRIGGER})"
    parser.add_argument("--continuous", action="store_true", help=continuous)
    parser.add_argument("--trigger", metavar="TIME", help=trigger)


def days(parser: ArgumentParser) -> None:
    keep = "remove rows of changelogs that landed more than N days ago (default: remove none)"
    history = "for how many days old versions of tables stay readable (default: 7)"
    parser.add_argument("--keep-days", type=int, metavar="N", help=keep)
    parser.add_argument("--history-days", type=int, metavar="N", default=7, help=history)


def kinds_of_tests(parser: ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--unit", action="store_true", help="run only unit tests and cases of formats")
    group.add_argument("--data", action="store_true", help="run only data tests")


def of_ls(parser: ArgumentParser) -> None:
    outputs, types = ("name", "path", "selector", "json"), ("source", "seed", "model", "test", "unit_test", "exposure")
    parser.add_argument("--output", choices=outputs, default="name", help="what to print of each node (default: name)")
    parser.add_argument("--resource-type", choices=types, help="list only nodes of this type")


def of_compile(parser: ArgumentParser) -> None:
    inline = "compile this SQL (with ref, source, var and macros) instead of models, and print it"
    parser.add_argument("--inline", metavar="SQL", help=inline)
    parser.add_argument(
        "--runnable", action="store_true", help="print the SQL, after the settings and functions that it needs"
    )


def of_show(parser: ArgumentParser) -> None:
    output = "how to print the rows (default: table)"
    parser.add_argument("--inline", metavar="SQL", help="show the rows of this query instead of a model's")
    parser.add_argument("--limit", type=int, metavar="N", default=10, help="show at most N rows (default: 10)")
    parser.add_argument("--output", choices=("table", "json"), default="table", help=output)


def of_parse(parser: ArgumentParser) -> None:
    output = "how to print the rows (default: table on a terminal, else json); case: as the NAME.rows.yml of a case"
    words = "the name of a format (default: the one that fits), and a file of messages, or - for standard input"
    parser.add_argument("words", metavar="[FORMAT] FILE", nargs="+", help=words)
    parser.add_argument("--kind", choices=("row", "ddl", "control", "dead_letter"), help="show only rows of this kind")
    parser.add_argument("--limit", type=int, metavar="N", help="show at most N rows (default: all)")
    parser.add_argument("--output", choices=("table", "json", "case"), help=output)


def of_docs(parser: ArgumentParser) -> None:
    no_tables = "start no Spark: the page says nothing of what has landed"
    parser.add_argument("action", choices=("generate",), help="write target/docs/index.html")
    parser.add_argument("--no-tables", action="store_true", help=no_tables)


def of_messages(parser: ArgumentParser) -> None:
    schema = "the Avro schema of the messages, or a folder of schemas NUMBER.avsc; may be given more than once"
    parser.add_argument("--zone", help='the time zone of local times, as "zone" of a source')
    parser.add_argument("--schema", type=Path, action="append", default=[], metavar="FILE", help=schema)


def of_formats(parser: ArgumentParser) -> None:
    action = (
        "list all formats, show NAME with what it inherits, check NAME or all, print the JSON Schema of specs, "
        "infer which format the messages in FILES have, or write a draft of one"
    )
    parser.add_argument("action", choices=("list", "show", "check", "schema", "infer"), help=action)
    words = "the name of a format; with infer: files of messages, or - for standard input"
    parser.add_argument("words", metavar="NAME", nargs="*", help=words)
    messages = "with check NAME: a file of messages; warns of what no row of them has"
    parser.add_argument("--messages", metavar="FILE", help=messages)
    draft = "with infer: write a draft of this name, also if a known format fits"
    parser.add_argument("--name", metavar="NAME", help=draft)


def of_init(parser: ArgumentParser) -> None:
    files = "a pattern of your own files, in quotes (default: messages of a sample, with a model and tests)"
    from_dbt = "the folder of a project of dbt: writes the project.yml that takes the place of its dbt_project.yml"
    parser.add_argument("name", metavar="NAME", nargs="?", help="the folder of the new project")
    parser.add_argument("--from-dbt", type=Path, metavar="FOLDER", help=from_dbt)
    parser.add_argument("--format", metavar="FORMAT", help="the format of your files: see runner formats list")
    parser.add_argument("--files", metavar="PATTERN", help=files)


def of_source(parser: ArgumentParser) -> None:
    action = "measure the selected sources, and write target/sources.json"
    parser.add_argument("action", choices=("freshness",), help=action)


def of_mirrors(parser: ArgumentParser) -> None:
    table = "only tables of this name, such as shop.orders or orders"
    parser.add_argument("action", choices=("suggest",), help="write mirrors of the tables that have landed, for review")
    parser.add_argument("--source", metavar="NAME", help="only tables of this source (default: all)")
    parser.add_argument("--table", metavar="TABLE", help=table)
    changes = "change mirrors that are there to what the data has"
    parser.add_argument("--apply", action="store_true", help=changes)


def of_completion(parser: ArgumentParser) -> None:
    shell = "print the script for this shell; candidates: print what could stand at the end of LINE, as the scripts ask"
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "candidates"), help=shell)
    parser.add_argument("line", metavar="LINE", nargs="?", default="", help="a command line up to the cursor")
