"""Who is told of runs: the hooks of `notify` in project.yml, and the place of events of OpenLineage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runner.errors import Problems
from runner.project.variables import Filler
from runner.yaml_text import Yaml

# The key of a list of hooks -> the state of a command that they are told.
STATES = {"on_failure": "failure", "on_warning": "warning", "on_recovery": "recovery"}
HOOK_KEYS = ("command", "url", "headers", "body", "timeout")
OPENLINEAGE_KEYS = ("url", "headers", "timeout", "file", "namespace")
# The seconds that a hook has, unless it says otherwise, and the most that it can have.
TIMEOUT, LONGEST_TIMEOUT = 10.0, 600.0

# What a hook is told: the fields that docs/monitoring.md lists.
Message = Mapping[str, Any]
# The body of each hook is filled in from these values when the project is read, so that mistakes in it are found then.
EXAMPLE: Message = {
    "project": "shop",
    "target": "local",
    "run_id": "20261129T211602Z-4370a122",
    "command": "build",
    "message": "shop (local): build failed: orders",
    "nodes": [{"name": "orders", "resource_type": "model", "status": "error", "message": "an example"}],
    "count": 1,
    "at": "2026-11-29T21:16:31Z",
    "look": "runner status",
}


@dataclass(frozen=True)
class Address:
    """The `url` to which JSON is posted with `headers`, within `timeout` seconds with all that is tried again."""

    url: str
    headers: Mapping[str, str]
    timeout: float

    @property
    def shown(self) -> str:
        """How a warning names the address. What follows the server in a URL may be a secret."""
        parts = urlsplit(self.url)
        return f'"{parts.scheme}://{parts.hostname}"'


@dataclass(frozen=True)
class Hook:
    """A hook. `event` is the key of the list in which it stands. It is a `command`, which is started in the project's
    folder, and has as many seconds as the address, or the `address` to which a message is posted. `body` says what is
    sent in place of the message, if it is not None.
    """

    event: str
    command: tuple[str, ...]
    address: Address
    body: Yaml | None
    filler: Filler

    @property
    def timeout(self) -> float:
        return self.address.timeout

    @property
    def shown(self) -> str:
        """How a warning names the hook."""
        return f'"{self.command[0]}" ({self.event})' if self.command else f"{self.address.shown} ({self.event})"

    def content(self, message: Message) -> bytes:
        """Returns the JSON that the hook gets; raises RunnerError for a template in its body that makes no text."""
        written = message if self.body is None else self._filled(self.body, message)
        return json.dumps(written, ensure_ascii=False).encode()

    def _filled(self, yaml: Yaml, message: Message) -> Any:
        if isinstance(yaml.value, dict):
            return {key: self._filled(value, message) for key, value in yaml.items()}
        if isinstance(yaml.value, list):
            return [self._filled(value, message) for value in yaml.elements()]
        return self.filler.text(yaml, message) if isinstance(yaml.value, str) else None


def read_hooks(yaml: Yaml | None, filler: Filler) -> tuple[Hook, ...]:
    """Returns the hooks of a project; raises all mistakes in them. A hook whose URL is empty is left out."""
    problems, hooks = Problems(), list[Hook]()
    for event, written in yaml.only(STATES).items() if yaml else ():
        for one in written.as_list():
            with problems.gathered():
                hooks += _hook(event, one, filler)
    problems.raise_if_any()
    return tuple(hooks)


def _hook(event: str, yaml: Yaml, filler: Filler) -> Iterator[Hook]:
    yaml.only(HOOK_KEYS)
    command, headers = yaml.get("command"), yaml.get("headers")
    if bool(command) == bool(yaml.get("url")):
        hint = 'command: ["./tell.sh"], or url: "{{ env_var(\'HOOK_URL\') }}"'
        raise yaml.error("hook-invalid", "a hook has a command or a url, and not both", hint)
    if headers and command:
        raise headers.error("hook-invalid", "a command gets no headers", "leave them out")
    words = tuple(filler.text(word) for word in command.list().elements()) if command else ()
    if command and not (words and words[0]):
        raise command.error("hook-invalid", "the command of a hook is empty", 'command: ["./tell.sh"]')
    body = yaml["body"].mapping() if yaml.get("body") else None
    hook = Hook(event, words, _address(yaml, filler), body, filler)
    hook.content({**EXAMPLE, "state": STATES[event]})
    if words or hook.address.url:
        yield hook


@dataclass(frozen=True)
class OpenLineage:
    """The place of events: they are added to the `file`, or posted to the `address` if there is none. Jobs have their
    names in the `namespace`.
    """

    namespace: str
    file: Path | None
    address: Address


def read_openlineage(yaml: Yaml | None, root: Path, name: str, filler: Filler) -> OpenLineage | None:
    """Returns the place of events, None if there is none; `name` is that of the project. Raises RunnerError."""
    if yaml is None:
        return None
    yaml.only(OPENLINEAGE_KEYS)
    file, namespace = yaml.get("file"), yaml.get("namespace")
    if bool(file) == bool(yaml.get("url")):
        hint = "openlineage: {file: target/openlineage.jsonl}"
        raise yaml.error("hook-invalid", "events of OpenLineage go to a file or to a url, and not to both", hint)
    address = _address(yaml, filler)
    path = root / filler.text(file) if file else None
    own = filler.text(namespace) if namespace else name
    return OpenLineage(own, path, address) if path or address.url else None


def _address(yaml: Yaml, filler: Filler) -> Address:
    url, headers = yaml.get("url"), yaml.get("headers")
    sent = {name: filler.setting(name, value) for name, value in headers.mapping().items()} if headers else {}
    return Address(_url(url, filler) if url else "", sent, _timeout(yaml.get("timeout")))


def _url(yaml: Yaml, filler: Filler) -> str:
    """Returns a URL; empty if the environment gives none."""
    url = filler.text(yaml)
    if url and not _is_whole(url):
        what = "a url begins with https:// or http://, and has no blanks"
        raise yaml.error("hook-invalid", what, "write the whole address")
    return url


def _is_whole(url: str) -> bool:
    try:
        return url.startswith(("http://", "https://")) and url.split() == [url] and bool(urlsplit(url).hostname)
    except ValueError:  # brackets that hold no address
        return False


def _timeout(yaml: Yaml | None) -> float:
    if yaml is None:
        return TIMEOUT
    text = yaml.text()
    seconds = float(text) if text.isascii() and text.replace(".", "", 1).isdecimal() else 0.0
    if not 0 < seconds <= LONGEST_TIMEOUT:
        what = f'"timeout" is a number of seconds up to {LONGEST_TIMEOUT:g}, not "{text}"'
        raise yaml.error("hook-invalid", what, "timeout: 10")
    return seconds
