"""The hooks of a project are told that a command has failed, has warned, or is well again. Each delivery has a thread
and a limit of time: a command waits for hooks only at its end, and no longer than they may take.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.counts import enumeration
from runner.errors import RunnerError, RunnerWarning
from runner.project.node_results import FAILED, NodeResults
from runner.project.nodes import Node
from runner.project.notifications import STATES, Address, Hook, Message
from runner.run.health import first_line
from runner.run.results import Result

if TYPE_CHECKING:
    from runner.run.run import Run

# The number of nodes that a message names.
NODES = 20
# How often a request is repeated, and the seconds before it is for the first time; then twice as long each time.
RETRIES, PAUSE = 3, 0.5
TOO_MANY_REQUESTS, SERVER_ERROR = 429, 500
# The most bytes that are shown of what a command prints.
SHOWN = 2_000
# The seconds that a process has to end when it is killed.
KILLED_WITHIN = 2.0
VERBS = {"failure": "failed", "warning": "warned", "recovery": "is well again"}


class Notifier:
    """Tells the hooks of a project what the results of a run say. After a command, or after each batch of a stream:

    - they are told of a failure if a node has failed, or was read in part, that had not before in this run;
    - else, of a recovery if all nodes of the run are well of which they were told that they had failed. A source is not
      well as long as dead letters are open that have reached its limit;
    - also of a warning, if a node has warned that had not before in this run.

    `warn` is told of hooks that fail, `say` what their commands print. A command that a signal has stopped tells
    nothing.
    """

    def __init__(self, run: Run, warn: Callable[[RunnerWarning], None], say: Callable[[str], None]) -> None:
        self.run, self.warn, self.say = run, warn, say
        self.hooks, self.records = run.project.hooks, NodeResults(run.project)
        self.nodes = {node.name: node for node in run.nodes} if self.hooks else {}
        self.told = {name for name, node in self.nodes.items() if self.records.read(node).is_told}
        self.results: dict[str, Result] = {}
        self.failing: set[str] = set()
        self.warning: set[str] = set()
        self.deliveries: list[Delivery] = []

    @contextmanager
    def at_end(self) -> Iterator[None]:
        """Tells the hooks when the block has ended, and waits for them."""
        yield
        self._tell()
        for delivery in self.deliveries:
            delivery.wait()
        self._report()

    def saw(self, node: Node, result: Result) -> None:
        """Takes in a result of a node."""
        self.nodes[node.name], self.results[node.name] = node, result

    def saw_batch(self, node: Node, result: Result) -> None:
        """Takes in a result of a stream, and tells the hooks if it changes the state."""
        self.saw(node, result)
        self._tell()
        self._report()

    def _tell(self) -> None:
        if not self.hooks:
            return
        failed = {name for name, result in self.results.items() if result.has_failed or result.is_incomplete}
        warned = {name for name, result in self.results.items() if result.status == "warn"}
        unwell = failed | {name for name in self.told if not self._is_well(name)}
        if failed - self.failing:
            self._mark(failed, True)
            self._send("failure", failed)
        elif self.told and not unwell:
            recovered = set(self.told)
            self._mark(recovered, False)
            self._send("recovery", recovered)
        if not failed and warned - self.warning:
            self._send("warning", warned)
        self.failing, self.warning = unwell & self.results.keys(), warned

    def _is_well(self, name: str) -> bool:
        result = self.results.get(name)
        if result is None or result.status in (*FAILED, "skipped"):
            return False
        return not self.records.read(self.nodes[name]).limit

    def _mark(self, names: Collection[str], is_told: bool) -> None:
        self.told = self.told | set(names) if is_told else self.told - set(names)
        for name in names:
            # That records cannot be written was told when the result was to be recorded.
            with suppress(OSError):
                self.records.told(self.nodes[name], is_told)

    def _send(self, state: str, names: Collection[str]) -> None:
        message = message_of(self.run, state, [self.results[name] for name in sorted(names)])
        for hook in self.hooks:
            if STATES[hook.event] == state:
                try:
                    content = hook.content(message)
                except RunnerError as error:
                    self.warn(_failed(hook, f"its body cannot be filled in: {error.message}"))
                else:
                    self.deliveries.append(Delivery(hook, content, self.run.project.root))

    def _report(self) -> None:
        """Reports the deliveries that have ended, and those whose time is over."""
        for delivery in [one for one in self.deliveries if one.has_ended]:
            self.deliveries.remove(delivery)
            for line in delivery.printed.splitlines():
                self.say(f"hook {delivery.hook.shown}: {line}")
            if delivery.failure:
                self.warn(_failed(delivery.hook, delivery.failure))


def message_of(run: Run, state: str, results: Collection[Result]) -> Message:
    """Returns what hooks are told of these results, without secrets."""
    project, redacted = run.project, run.project.secrets.redacted
    names = enumeration([result.name for result in results])
    return {
        "project": project.name,
        "target": project.target.name,
        "run_id": run.run_id,
        "command": run.command,
        "state": state,
        "message": redacted(f"{project.name} ({project.target.name}): {run.command} {VERBS[state]}: {names}"),
        "nodes": [_told(result, redacted) for result in list(results)[:NODES]],
        "count": len(results),
        "at": f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
        "look": "runner status",
    }


def _told(result: Result, redacted: Callable[[str], str]) -> Mapping[str, Any]:
    said = redacted("\n".join([result.message, *result.notes]).strip())
    return {
        "name": result.name,
        "resource_type": result.resource_type,
        "status": result.status,
        "message": first_line(said),
    }


def _failed(hook: Hook, why: str) -> RunnerWarning:
    hint = "the run is as it is: try the hook by hand, or give it a longer timeout"
    return RunnerWarning("hook-failed", f"the hook {hook.shown} was not told: {why}", hint=hint)


# --- one hook and one message


class Undelivered(Exception):
    """A hook did not take its message; the text says why."""


class Delivery:
    """The delivery of a message to a hook, which begins at once. When it has ended, `failure` says why it did not work,
    and `printed` what the command printed.
    """

    def __init__(self, hook: Hook, content: bytes, folder: Path) -> None:
        self.hook, self.content, self.folder = hook, content, folder
        self.until = time.monotonic() + hook.timeout
        self.failure, self.printed = f"it has not ended after {hook.timeout:g} s", ""
        self.thread = threading.Thread(target=self._deliver, daemon=True)
        self.thread.start()

    @property
    def has_ended(self) -> bool:
        return not self.thread.is_alive() or time.monotonic() >= self.until + KILLED_WITHIN

    def wait(self) -> None:
        """Waits until the delivery has ended, or its time is over."""
        self.thread.join(max(0.0, self.until + KILLED_WITHIN - time.monotonic()))

    def _deliver(self) -> None:
        try:
            self._start() if self.hook.command else post(self.hook.address, self.content, self.until)
        except Undelivered as why:
            self.failure = f"{why}"
        else:
            self.failure = ""

    def _start(self) -> None:
        """Starts the command, without a shell. What it reads and prints are files: nothing waits for a pipe."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
            given.write(self.content)
            given.seek(0)
            try:
                process = subprocess.Popen(
                    self.hook.command,
                    stdin=given,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise Undelivered(getattr(error, "strerror", None) or f"{error}") from None
            try:
                code = process.wait(max(0.0, self.until - time.monotonic()))
            except subprocess.TimeoutExpired:
                # Nothing that the command has started in its group goes on.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise Undelivered(self.failure) from None
            finally:
                printed.seek(0)
                self.printed = printed.read(SHOWN).decode(errors="replace")
        if code:
            raise Undelivered(f"its exit code is {code}")


def post(address: Address, content: bytes, until: float) -> None:
    """Posts JSON, and posts it again if the server cannot be reached, or says that it cannot answer now; not after the
    time `until`. Raises Undelivered.
    """
    # Only a run that tells something needs these modules.
    import http.client
    import urllib.error

    for retry in range(RETRIES + 1):
        try:
            return _posted(address, content, until - time.monotonic())
        except urllib.error.HTTPError as answer:
            error, is_final = f"the answer is {answer.code} {answer.reason}", _is_final(answer.code)
            answer.close()
        except (OSError, http.client.HTTPException, ValueError) as problem:
            # Only the reason is told: the address may be a secret.
            reason = getattr(problem, "reason", problem)
            error, is_final = f"{getattr(reason, 'strerror', None) or reason}", isinstance(problem, ValueError)
        pause = PAUSE * 2**retry
        if is_final or retry == RETRIES or time.monotonic() + pause >= until:
            raise Undelivered(error)
        time.sleep(pause)
    return None


def _is_final(code: int) -> bool:
    """Returns True if a server that answers so answers the same again."""
    return code < SERVER_ERROR and code != TOO_MANY_REQUESTS


def _posted(address: Address, content: bytes, seconds: float) -> None:
    """Posts a message once. A redirection is an error: what follows it would not be a POST."""
    import urllib.request

    class Direct(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *arguments: Any) -> None:
            """Follows nothing."""

    headers = {"Content-Type": "application/json", **address.headers}
    request = urllib.request.Request(address.url, content, headers, method="POST")
    urllib.request.build_opener(Direct).open(request, timeout=max(0.1, seconds)).close()
