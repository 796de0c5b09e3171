"""The arguments of commands: data only, independent of how the command line writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.secrets import Secrets

# The default time from batch to batch of a continuous run.
TRIGGER = "10s"


@dataclass(frozen=True)
class ProjectArguments:
    """Which project, and how to read it. If `project_dir` is None, it is looked for from the current folder upwards.
    What it reads of secrets is added to `secrets`.
    """

    project_dir: Path | None = None
    target: str | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    target_path: Path | None = None
    secrets: Secrets = field(default_factory=Secrets)


@dataclass(frozen=True)
class Selection:
    """Selectors of nodes: without any, all nodes are selected. `state` is the target folder of an earlier run, with
    which they compare; `selector` is the name of a saved selector, in place of the others.
    """

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    state: Path | None = None
    selector: str | None = None

    @property
    def text(self) -> str:
        return " ".join(self.select) or self.selector or ""


@dataclass(frozen=True)
class RunArguments:
    """`trigger` is the time from batch to batch of a continuous run, such as 10s. With `empty`, models are built of no
    rows; with `defer`, what is neither selected nor here is read where the tables of the state are. `only` are the
    names of the nodes to run, whatever is selected.
    """

    project: ProjectArguments
    selection: Selection = Selection()
    threads: int = 4
    fail_fast: bool = False
    full_refresh: bool = False
    continuous: bool = False
    trigger: str | None = None
    unit_only: bool = False
    data_only: bool = False
    empty: bool = False
    defer: bool = False
    only: tuple[str, ...] | None = None


@dataclass(frozen=True)
class MaintainArguments:
    """For how many days rows (None: for ever) and old versions of tables are kept."""

    project: ProjectArguments
    selection: Selection = Selection()
    keep_days: int | None = None
    history_days: int = 7


@dataclass(frozen=True)
class FreshnessArguments:
    """Which sources are measured."""

    project: ProjectArguments
    selection: Selection = Selection()


@dataclass(frozen=True)
class ListArguments:
    """`output` is one of name, path, selector, json."""

    project: ProjectArguments
    selection: Selection = Selection()
    resource_type: str | None = None
    output: str = "name"


@dataclass(frozen=True)
class CompileArguments:
    """`inline` is SQL to compile instead of models."""

    project: ProjectArguments
    selection: Selection = Selection()
    inline: str | None = None
    runnable: bool = False
    print_sql: bool = False


@dataclass(frozen=True)
class ShowArguments:
    """`output` is table or json; with `defer`, tables that are not here are read where those of the state are."""

    project: ProjectArguments
    selection: Selection = Selection()
    inline: str | None = None
    limit: int = 10
    output: str = "table"
    defer: bool = False


@dataclass(frozen=True)
class DocsArguments:
    """`reads_tables` is whether the page says what has landed, for which Spark starts."""

    project: ProjectArguments
    reads_tables: bool = True


@dataclass(frozen=True)
class MessagesArguments:
    """A file of messages (- for standard input) and its format, with what a source would declare about them. Without a
    name, the format is the one that fits.
    """

    project: ProjectArguments
    format: str
    file: str
    zone: str | None = None
    schemas: tuple[Path, ...] = ()


@dataclass(frozen=True)
class ParseArguments:
    """`output` is table or json; None means a table on a terminal and JSON elsewhere."""

    messages: MessagesArguments
    kind: str | None = None
    limit: int | None = None
    output: str | None = None


@dataclass(frozen=True)
class InitArguments:
    """The folder of a new project, and the messages that it starts from; None for those of a sample."""

    name: str
    messages: MessagesArguments | None = None


@dataclass(frozen=True)
class FormatsArguments:
    """`action` is one of list, show, check, schema; `messages` are what to check a format with."""

    project: ProjectArguments
    action: str
    name: str | None = None
    messages: MessagesArguments | None = None


@dataclass(frozen=True)
class InferArguments:
    """Files of messages of an unknown format, with what a source would declare about them. `name` is that of a draft:
    without it there is only one if no known format fits, with a name made of that of the first file.
    """

    project: ProjectArguments
    files: tuple[str, ...]
    name: str | None = None
    zone: str | None = None
    schemas: tuple[Path, ...] = ()


@dataclass(frozen=True)
class MirrorsArguments:
    """The source and the name of the tables to look at; None for all. `apply`: whether mirrors that are there become as
    the data is.
    """

    project: ProjectArguments
    source: str | None = None
    table: str | None = None
    apply: bool = False


@dataclass(frozen=True)
class DebugArguments:
    """`java_home` is where Java is; None for the one that is found in PATH. `local_dirs` are the folders for Spark's
    temporary files, with commas between; None for those of the target.
    """

    project: ProjectArguments
    java_home: str | None = None
    local_dirs: str | None = None


@dataclass(frozen=True)
class CompletionArguments:
    """A shell whose script is wanted; or `candidates`, and the line up to the cursor."""

    project: ProjectArguments
    shell: str
    line: str = ""
