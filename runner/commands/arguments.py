"""The arguments of commands, independent of how the command line writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from runner.errors import RunnerError
from runner.report import Report
from runner.run.workspace import ProjectArguments, Selection
from runner.secrets import Secrets

# The default time from batch to batch of a continuous run.
TRIGGER = "10s"
# Where metrics are served unless another address is given: for this machine alone.
METRICS_HOST = "127.0.0.1"


@dataclass(frozen=True)
class RunArguments:
    """The arguments of a run. `trigger` is the time from batch to batch of a continuous run, such as 10s. With `empty`,
    models are built of no rows. With `defer`, tables that are neither selected nor here are read where the tables of
    the state are. `only` are the names of the nodes to run, whatever is selected. Metrics are written to the file
    `metrics`, and a continuous run serves them at `metrics_host` and `metrics_port`. `local_dirs` is the variable that
    Spark reads for its folders.
    """

    project: ProjectArguments
    selection: Selection = field(default_factory=Selection)
    threads: int = 4
    fail_fast: bool = False
    full_refresh: bool = False
    accept_loss: bool = False
    continuous: bool = False
    trigger: str | None = None
    unit_only: bool = False
    data_only: bool = False
    empty: bool = False
    defer: bool = False
    only: tuple[str, ...] | None = None
    metrics: Path | None = None
    metrics_port: int | None = None
    metrics_host: str | None = None
    local_dirs: str | None = None


@dataclass(frozen=True)
class MessagesArguments:
    """A file of messages (- for standard input) and its format, with what a source would declare about the messages. If
    `format` is empty, the format is the one that fits.
    """

    project: ProjectArguments
    format: str
    file: str
    zone: str | None = None
    schemas: tuple[Path, ...] = ()


class Call:
    """One call of the command line. `command` is the name of its command, `flags` are the values of the flags that
    several commands have, `report` reports how the call goes.
    """

    def __init__(self, environment: Mapping[str, str], stdout: TextIO | None = None) -> None:
        self.environment, self.stdout = environment, stdout
        self.secrets = Secrets()
        self.command = ""
        self.flags: dict[str, Any] = {}

    @cached_property
    def report(self) -> Report:
        """The report, which is made when all flags are read, or when one of them is a mistake."""
        log_format = self.flags.get("log_format") or self.environment.get("RUNNER_LOG_FORMAT", "text")
        is_dumb = self.environment.get("TERM") == "dumb"
        color = False if self.flags.get("no_color") or self.environment.get("NO_COLOR") or is_dumb else None
        is_quiet = bool(self.flags.get("quiet"))
        return Report(log_format, is_quiet, color, None, self.stdout, self.secrets, live=not is_dumb)

    @property
    def project(self) -> ProjectArguments:
        flags = self.flags
        variables = _variables(flags["vars"])
        return ProjectArguments(
            flags["project_dir"],
            flags["target"],
            variables,
            flags["target_path"],
            self.secrets,
            self.report.of_project,
        )

    @property
    def selection(self) -> Selection:
        select, exclude, selector = (self.flags[name] for name in ("select", "exclude", "selector"))
        if selector and (select or exclude):
            hint = f"runner {self.command} -s selector:{selector},tag:nightly"
            raise RunnerError("usage", '"--selector" stands alone, without "--select" and "--exclude"', hint=hint)
        return Selection(select, exclude, self.flags["state"], selector)

    def messages(self, format_name: str, file: str) -> MessagesArguments:
        return MessagesArguments(self.project, format_name, file, self.flags["zone"], self.flags["schema"])


def instant(flag: str, text: str | None) -> str:
    """Returns an instant as SQL reads it, empty if none is given; raises `usage` for a text that is none.

    >>> instant("--since", "2026-11-20"), instant("--since", "2026-11-20T10:00:00Z"), instant("--since", None)
    ('2026-11-20T00:00:00', '2026-11-20T10:00:00+00:00', '')
    """
    if not text:
        return ""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).isoformat()
    except ValueError:
        hint = "such as 2026-11-20 or 2026-11-20T10:00:00Z"
        raise RunnerError("usage", f'"{flag}" must be a day or an instant, not "{text}"', hint=hint) from None


def _variables(text: str | None) -> dict[str, Any]:
    if not text:
        return {}
    from runner.yaml_text import yaml_of

    try:
        given = yaml_of(text, Path("--vars")).mapping()
        for name, value in given.items():
            if value.value is None and ":" in name:
                raise value.error("vars", f'"{name}" is a name without a value: a blank follows the colon')
        return dict(given.data())
    except RunnerError as e:
        raise RunnerError(
            "vars", f"cannot read the variables: {e.message}", e.where, '--vars "{start: 2024-01-01, limit: 10}"'
        ) from None
