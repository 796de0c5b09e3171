"""Metrics of a project as OpenMetrics text, in a file or at an address. They are of two types only, counter and gauge,
because readers of the older text format of Prometheus know no others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.errors import RunnerError, RunnerWarning
from runner.files import write_whole
from runner.project.node_results import FAILED
from runner.run.health import Health
from runner.run.results import INTERRUPTED

if TYPE_CHECKING:
    from runner.run.run import Run

PREFIX = "changelog_runner"
CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
UNITS = ("seconds", "bytes")
# While a run goes on, the pause after metrics were written is so many times as long as that took.
REST = 10
EVERYWHERE = ("project", "target")


class Family(NamedTuple):
    """A metric: its type, its labels beside those that all have, and what it says."""

    type: str
    labels: tuple[str, ...]
    help: str


NODE, TABLE = ("node", "resource_type"), ("node", "kind")
FAMILIES = {
    "well": Family("gauge", (), "1 if runner status says that all is well, else 0"),
    "problems": Family("gauge", (), "The number of things that are not well"),
    "warnings": Family("gauge", (), "The number of things that are worth a look"),
    "messages": Family("counter", ("source",), "Messages that have landed"),
    "rows": Family("counter", ("source", "kind"), "Rows of the changelog that have landed, by kind"),
    "dead_letters": Family("counter", ("source", "reason"), "Dead letters that have landed, by reason"),
    "dead_letters_open": Family("gauge", ("source",), "Dead letters that are neither waived nor landed since"),
    "source_waiting_files": Family("gauge", ("source",), "Files that have not landed"),
    "source_waiting_bytes": Family("gauge", ("source",), "The size of the files that have not landed"),
    "source_behind_messages": Family("gauge", ("source",), "Messages that the newest batch left in topics"),
    "source_landed_timestamp_seconds": Family("gauge", ("source",), "When messages landed last"),
    "table_behind_batches": Family("gauge", TABLE, "Batches that have landed and that the table has not read"),
    "table_written_rows": Family("gauge", TABLE, "Rows that were written when the table was last written"),
    "table_built_timestamp_seconds": Family("gauge", TABLE, "When the table was last brought up to date"),
    "node_failed": Family("gauge", NODE, "1 if the newest result of the node is a failure, else 0"),
    "node_ended_timestamp_seconds": Family("gauge", NODE, "When the node ended last"),
    "node_duration_seconds": Family("gauge", NODE, "How long the node took when it ran last"),
    "node_results": Family("counter", (*NODE, "status"), "Results of the node, by status"),
    "node_run_seconds": Family("counter", NODE, "The time that the node took in all of its runs"),
    "run_ended_timestamp_seconds": Family("gauge", ("command",), "When the run that wrote these metrics ended"),
    "run_exit_code": Family("gauge", ("command",), "The exit code of the run that wrote these metrics"),
    "runs_dead": Family("gauge", (), "Runs that were stopped before their end, and have not been repeated"),
    "disk_free_bytes": Family("gauge", ("place",), "Free space for tables and for Spark"),
    "maintained_timestamp_seconds": Family("gauge", (), "When a table was maintained last"),
}
# The name of a family, the values of its labels, and the value; a family whose value is not known has no sample.
Sample = tuple[str, tuple[str, ...], float | None]


class Metrics:
    """The metrics of the project of a run, which may come to know more nodes. They are written to `file`, if there is
    one. `local_dirs` is the variable that Spark reads for its folders; `warn` is told once if the file cannot be
    written.
    """

    def __init__(self, file: Path | None, local_dirs: str | None, warn: Callable[[RunnerWarning], None]) -> None:
        self.file, self.local_dirs, self.warn = file, local_dirs, warn
        self.has_warned, self.asking = False, threading.Lock()
        self.rests_until = 0.0

    @contextmanager
    def of(self, run: Run) -> Iterator[None]:
        """Writes the metrics when the block has ended, however it ends, if the run has results."""
        is_interrupted = False
        try:
            yield
        except KeyboardInterrupt:
            is_interrupted = True
            raise
        finally:
            if run.results is not None:
                self.write(run, INTERRUPTED if is_interrupted else run.exit_code)

    def write(self, run: Run, exit_code: int | None = None) -> None:
        """Writes the metrics to the file, if there is one. A run does not fail because it cannot. While the run goes
        on, writing takes no more than a part of its time: with hundreds of mirrors some events are passed over.
        """
        began = time.monotonic()
        if self.file is None or (exit_code is None and began < self.rests_until):
            return
        try:
            write_whole(self.file, self.text(run, exit_code))
        except OSError as error:
            if not self.has_warned:
                self.has_warned = True
                what = f'metrics cannot be written to "{self.file}": {error.strerror}'
                self.warn(RunnerWarning("metrics-unwritten", what, hint="--metrics FILE, in a folder for this user"))
        self.rests_until = time.monotonic() + REST * (time.monotonic() - began)

    def text(self, run: Run, exit_code: int | None = None) -> str:
        """Returns the metrics as text, with its exit code if the run has ended."""
        # Whoever asks at the address may ask twice at the same time.
        with self.asking:
            health = Health(run.workspace, run.workspace.graph.nodes, self.local_dirs)
        ending = () if exit_code is None else _of_run(run.command, exit_code, health.now)
        everywhere = (run.project.name, run.project.target.name)
        return run.project.secrets.redacted(openmetrics(everywhere, [*_samples(health), *ending]))

    @contextmanager
    def served(self, run: Run, host: str, port: int | None) -> Iterator[None]:
        """Serves the metrics at an address during the block, if there is a port; raises `metrics-address`."""
        if port is None:
            yield
            return
        server = _server(host, port, lambda: self.text(run))
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def openmetrics(everywhere: tuple[str, str], samples: Iterable[Sample]) -> str:
    r"""Returns samples as OpenMetrics text, with the project and the target of all.

    >>> print(openmetrics(("shop", "a\"b"), [("messages", ("orders",), 3), ("well", (), 1)]), end="")
    # HELP changelog_runner_well 1 if runner status says that all is well, else 0
    # TYPE changelog_runner_well gauge
    changelog_runner_well{project="shop",target="a\"b"} 1
    # HELP changelog_runner_messages Messages that have landed
    # TYPE changelog_runner_messages counter
    changelog_runner_messages_total{project="shop",target="a\"b",source="orders"} 3
    # EOF
    """
    by_family: dict[str, list[tuple[tuple[str, ...], float]]] = {}
    for name, values, value in samples:
        if value is not None:
            by_family.setdefault(name, []).append((values, value))
    lines = []
    for name, family in FAMILIES.items():
        if name in by_family:
            lines += _head(name, family)
            ending = "_total" if family.type == "counter" else ""
            labels = (*EVERYWHERE, *family.labels)
            for values, value in sorted(by_family[name]):
                named = ",".join(f'{label}="{_escaped(one)}"' for label, one in zip(labels, (*everywhere, *values)))
                lines.append(f"{PREFIX}_{name}{ending}{{{named}}} {value:.15g}")
    return "\n".join([*lines, "# EOF", ""])


def _head(name: str, family: Family) -> list[str]:
    unit = name.rpartition("_")[2]
    lines = [f"# HELP {PREFIX}_{name} {family.help}", f"# TYPE {PREFIX}_{name} {family.type}"]
    return [*lines, f"# UNIT {PREFIX}_{name} {unit}"] if unit in UNITS else lines


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _samples(health: Health) -> Iterator[Sample]:
    """Yields all that is known of a project."""
    yield "well", (), int(not health.problems)
    yield "problems", (), len(health.problems)
    yield "warnings", (), len(health.warnings)
    yield "runs_dead", (), sum(one["is"] == "dead" for one in health.locks)
    yield "maintained_timestamp_seconds", (), _seconds(health.maintained)
    for disk in health.disks:
        yield "disk_free_bytes", (disk["what"],), disk["free"]
    for source in health.sources:
        yield from _of_source(health, source)
    for table in health.tables:
        labels = table["name"], table["kind"]
        yield "table_behind_batches", labels, table["behind"]
        yield "table_written_rows", labels, table["rows"]
        yield "table_built_timestamp_seconds", labels, _seconds(table["built"])
    for node in health.nodes:
        record, labels = health.records[node.name], (node.label, node.resource_type)
        for status, count in record.statuses.items():
            yield "node_results", (*labels, status), count
        if newest := record.newest:
            yield "node_failed", labels, int(newest["status"] in FAILED)
            yield "node_ended_timestamp_seconds", labels, _seconds(newest["ended"])
            yield "node_duration_seconds", labels, newest["seconds"]
            yield "node_run_seconds", labels, record.seconds


def _of_source(health: Health, source: Mapping[str, Any]) -> Iterator[Sample]:
    record, labels = health.records[source["model"]], (source["name"],)
    for kind, count in record.rows.items():
        yield ("messages", labels, count) if kind == "messages" else ("rows", (*labels, kind), count)
    for reason, count in record.reasons.items():
        yield "dead_letters", (*labels, reason), count
    yield "dead_letters_open", labels, source["dead_letters_open"]
    yield "source_waiting_files", labels, source["waiting_files"]
    yield "source_waiting_bytes", labels, source["waiting_bytes"]
    yield "source_behind_messages", labels, source["behind"]
    yield "source_landed_timestamp_seconds", labels, _seconds(source["landed"])


def _of_run(command: str, exit_code: int, now: datetime) -> Iterator[Sample]:
    yield "run_ended_timestamp_seconds", (command,), int(now.timestamp())
    yield "run_exit_code", (command,), exit_code


def _seconds(instant: str | None) -> float | None:
    return datetime.fromisoformat(instant.replace("Z", "+00:00")).timestamp() if instant else None


def _server(host: str, port: int, text: Callable[[], str]) -> Any:
    """Returns a server that answers `/metrics` alone; raises `metrics-address`."""
    # Only a run that serves metrics needs these modules.
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.path.partition("?")[0] == "/metrics"
            content = text().encode() if is_known else b"metrics are at /metrics\n"
            self.send_response(200 if is_known else 404)
            self.send_header("Content-Type", CONTENT_TYPE if is_known else "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Logs nothing: standard error has the lines of the run."""

    try:
        return ThreadingHTTPServer((host, port), Handler)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else "there are no more than 65535 ports"
        hint = "another --metrics-port, or the --metrics-host of this machine"
        raise RunnerError("metrics-address", f'metrics cannot be served at "{host}:{port}": {why}', hint=hint) from None
