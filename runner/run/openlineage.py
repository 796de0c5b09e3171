"""Events of OpenLineage about a run and its nodes: when they start and end, what they read and write, and from which
columns columns come. They are added to a file as lines of JSON, or posted one after the other.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runner.compile.column_lineage import Columns, columns_of_models, known_types
from runner.errors import RunnerError, RunnerErrors, RunnerWarning
from runner.files import is_uri
from runner.project.inputs import ExternalTable, Messages, Target
from runner.project.nodes import Node
from runner.project.notifications import OpenLineage
from runner.run.health import first_line
from runner.run.notifications import Undelivered, post
from runner.run.results import Result

if TYPE_CHECKING:
    from runner.run.run import Run

PRODUCER = "urn:changelog-runner"
EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
# The name of a facet -> the name of its definition, and the version of that.
FACETS = {
    "parent": ("ParentRunFacet", "1-0-0"),
    "errorMessage": ("ErrorMessageRunFacet", "1-0-0"),
    "schema": ("SchemaDatasetFacet", "1-0-0"),
    "columnLineage": ("ColumnLineageDatasetFacet", "1-0-1"),
    "outputStatistics": ("OutputStatisticsOutputDatasetFacet", "1-0-0"),
}
ADDRESS = "kafka.bootstrap.servers"

Json = dict[str, Any]


class LineageEvents:
    """The events of a run. `warn` is told at most once if events do not arrive. A run never fails because of them."""

    def __init__(self, run: Run, warn: Callable[[RunnerWarning], None]) -> None:
        self.run, self.warn, self.place = run, warn, run.project.openlineage
        self.outlet = Outlet(self.place) if self.place else None
        self.id = f"{uuid.uuid4()}"
        # Node -> the id of its run, for nodes that have started and not ended.
        self.running: dict[str, str] = {}
        self.columns: dict[Run, Mapping[str, Columns]] = {}

    @contextmanager
    def of_run(self) -> Iterator[None]:
        """Tells that the run starts and how it ends, and waits a while until all events have been sent."""
        if not self.outlet:
            yield
            return
        ending = "FAIL"
        self._emit("START", self.id, self._job)
        try:
            yield
            ending = "FAIL" if self.run.exit_code else "COMPLETE"
        except KeyboardInterrupt:
            ending = "ABORT"
            raise
        finally:
            for name, run_id in self.running.items():
                self._emit("ABORT", run_id, self._job_of(name), parent=True)
            self._emit(ending, self.id, self._job)
            if why := self.outlet.close():
                hint = "correct the key openlineage in project.yml, or look at what should receive them"
                what = f"events of OpenLineage have not arrived: {why}"
                self.warn(RunnerWarning("openlineage-unsent", what, hint=hint))

    def started(self, run: Run, node: Node, at: datetime | None = None) -> None:
        """Tells that a node of a run starts, unless that was told."""
        if self.outlet and node.name not in self.running:
            self.running[node.name] = f"{uuid.uuid4()}"
            inputs, outputs = self._datasets(run, node)
            datasets = {"inputs": inputs, "outputs": outputs}
            self._emit("START", self.running[node.name], self._job_of(node.name), datasets, at, parent=True)

    def ended(self, run: Run, node: Node, result: Result) -> None:
        """Tells how a node has ended; nothing of nodes that were skipped."""
        if not self.outlet or result.status == "skipped":
            return
        self.started(run, node, result.ended - timedelta(seconds=result.seconds))
        inputs, outputs = self._datasets(run, node)
        if outputs and result.rows:
            rows = result.rows.get("rows", sum(n for kind, n in result.rows.items() if kind != "messages"))
            outputs[0]["outputFacets"] = _facets(outputStatistics={"rowCount": rows})
        error = {"message": first_line(result.message) or result.status, "programmingLanguage": "SQL"}
        facets = _facets(errorMessage=error) if result.has_failed else {}
        run_id, datasets = self.running.pop(node.name), {"inputs": inputs, "outputs": outputs}
        state = "FAIL" if result.has_failed else "COMPLETE"
        self._emit(state, run_id, self._job_of(node.name), datasets, result.ended, parent=True, facets=facets)

    @property
    def _job(self) -> Json:
        return self._job_of(self.run.command)

    def _job_of(self, name: str) -> Json:
        assert self.place
        return {"namespace": self.place.namespace, "name": f"{self.run.project.name}.{name}"}

    def _emit(
        self,
        state: str,
        run_id: str,
        job: Json,
        datasets: Mapping[str, list[Json]] | None = None,
        at: datetime | None = None,
        parent: bool = False,
        facets: Mapping[str, Json] | None = None,
    ) -> None:
        assert self.outlet
        of_parent = _facets(parent={"run": {"runId": self.id}, "job": self._job}) if parent else {}
        event = {
            "eventType": state,
            "eventTime": (at or datetime.now(timezone.utc)).astimezone(timezone.utc).isoformat(timespec="milliseconds"),
            "run": {"runId": run_id, "facets": {**of_parent, **(facets or {})}},
            "job": job,
            **(datasets or {"inputs": [], "outputs": []}),
            "producer": PRODUCER,
            "schemaURL": EVENT,
        }
        self.outlet.put(self.run.project.secrets.redacted(json.dumps(event, ensure_ascii=False)))

    # --- datasets

    def _datasets(self, run: Run, node: Node) -> tuple[list[Json], list[Json]]:
        """Returns what a node reads, and what it writes."""
        if node.model and node.model.source:
            inputs = list(of_messages(node.model.source.messages))
        else:
            inputs = [self._dataset(run, one) for one in _read_by(run, node)]
        if not node.model:
            return inputs, []
        output = self._dataset(run, node)
        columns = self._columns(run).get(node.name) or {"names": [], "from": {}}
        types = known_types(node.model)
        fields = [{"name": name, **({"type": types[name]} if name in types else {})} for name in columns["names"]]
        origins = {name: self._fields(run, ends) for name, ends in columns["from"].items()}
        lineage = {name: {"inputFields": ends} for name, ends in origins.items() if ends}
        facets = {"schema": {"fields": fields}} if fields else {}
        output["facets"] = _facets(**facets, **({"columnLineage": {"fields": lineage}} if lineage else {}))
        return inputs, [output]

    def _columns(self, run: Run) -> Mapping[str, Columns]:
        """Returns the columns of models; none if a file that says them, such as a seed, cannot be read."""
        if run not in self.columns:
            self.columns[run] = {}
            with suppress(RunnerError, RunnerErrors, OSError):
                self.columns[run] = columns_of_models(run.graph, run.compiled)
        return self.columns[run]

    def _fields(self, run: Run, ends: Iterable[list[str]]) -> list[Json]:
        known = dict.fromkeys(self._origins(run, ends))
        return [{**self._dataset(run, run.graph.nodes[name]), "field": column} for name, column in known]

    def _origins(self, run: Run, ends: Iterable[list[str]]) -> Iterator[tuple[str, str]]:
        """Yields columns of nodes with a table or a view; those of ephemeral models are followed further."""
        for name, column, *_ in ends:
            node = run.graph.nodes.get(name)
            if node and node.model and node.model.is_ephemeral:
                yield from self._origins(run, self.columns[run][name]["from"].get(column, ()))
            elif node:
                yield name, column

    def _dataset(self, run: Run, node: Node) -> Json:
        """Returns the dataset of a table or a view."""
        assert self.place
        if isinstance(table := node.subject, ExternalTable):
            if table.folder:
                return of_path(table.folder)
            return {"namespace": self.place.namespace, "name": ".".join(table.place)}
        return of_table(run.project.target, node.relation, self.place.namespace)


def of_table(target: Target, name: str, namespace: str) -> Json:
    """Returns the dataset of a table: its name in a catalog, which is in the namespace of jobs, or else its folder.

    >>> of_table(Target("local", "s3a://lake/shop"), "orders", "prod")
    {'namespace': 's3a://lake', 'name': 'shop/orders'}
    """
    if target.catalog:
        return {"namespace": namespace, "name": f"{target.catalog.name}.{target.catalog.schema}.{name}"}
    return of_path(target.at(name))


def of_path(path: str) -> Json:
    """Returns the dataset of a file, a folder or a pattern of them.

    >>> of_path("/data/in/*.jsonl")
    {'namespace': 'file', 'name': '/data/in/*.jsonl'}
    """
    parts = urlsplit(path)
    if not is_uri(path) or not parts.netloc:
        return {"namespace": "file", "name": path.removeprefix("file://")}
    return {"namespace": f"{parts.scheme}://{parts.netloc}", "name": path.partition(parts.netloc)[2].lstrip("/")}


def of_messages(messages: Messages) -> Iterator[Json]:
    """Yields the datasets of messages: topics, or files. Those of a query in a database are not named."""
    if messages.topics:
        options = messages.topics.options
        server = options[ADDRESS].partition(",")[0].strip()
        assigned = json.loads(options.get("assign", "{}"))
        listed = options.get("subscribe", options.get("subscribePattern", ""))
        names = [*assigned, *listed.split(",")] if "subscribePattern" not in options else [listed]
        for topic in filter(None, names):
            yield {"namespace": f"kafka://{server}", "name": topic.strip()}
    elif not messages.jdbc:
        yield of_path(messages.path)


def _read_by(run: Run, node: Node) -> Iterator[Node]:
    """Yields the nodes with a table or a view that a node reads, also through ephemeral models."""
    for name in node.parents:
        parent = run.graph.nodes[name]
        if parent.model and parent.model.is_ephemeral:
            yield from _read_by(run, parent)
        elif parent.model or isinstance(parent.subject, ExternalTable):
            yield parent


def _facets(**facets: Mapping[str, Any]) -> Json:
    """Returns facets with their producer and the address of their definition."""
    return {name: {"_producer": PRODUCER, "_schemaURL": _definition(name), **facet} for name, facet in facets.items()}


def _definition(facet: str) -> str:
    name, version = FACETS[facet]
    return f"https://openlineage.io/spec/facets/{version}/{name}.json#/$defs/{name}"


# --- where events go


class Outlet:
    """The file or the address that gets events, in their order. After the first that does not arrive no other is tried.
    Events are posted by a thread: nothing waits for them until the run has ended.
    """

    def __init__(self, place: OpenLineage) -> None:
        self.place, self.failure = place, ""
        self.waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._post_all, daemon=True)
        if not place.file:
            self.thread.start()

    def put(self, event: str) -> None:
        """Takes an event as a line of JSON."""
        if self.failure:
            return
        if not self.place.file:
            self.waiting.put(event)
            return
        try:
            self.place.file.parent.mkdir(parents=True, exist_ok=True)
            with self.place.file.open("a", encoding="utf-8") as file:
                file.write(f"{event}\n")
        except OSError as error:
            self.failure = f'"{self.place.file}" cannot be written: {error.strerror}'

    def close(self) -> str:
        """Waits until all events are posted, but no longer than one of them may take; returns why some did not arrive,
        or an empty text.
        """
        if not self.place.file:
            self.waiting.put(None)
            self.thread.join(self.place.address.timeout)
            if self.thread.is_alive():
                address = self.place.address
                return f"{address.shown} has not taken all of them {address.timeout:g} s after the end"
        return self.failure

    def _post_all(self) -> None:
        while (event := self.waiting.get()) is not None:
            try:
                if not self.failure:
                    post(self.place.address, event.encode(), time.monotonic() + self.place.address.timeout)
            except Undelivered as why:
                self.failure = f"{self.place.address.shown}: {why}"
