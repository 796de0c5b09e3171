"""The reader of messages that begin with the number of their schema, and the schemas by number: those that are given,
and those of a registry over HTTP. Its answers are kept in files: a number never means another schema later.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from runner.functions.avro.layout import Layout, Numbers, Registry, tls_context
from runner.functions.avro.messages import REMEMBERED, Decode, Found, own_decoder, record_decoder, refusing
from runner.functions.avro.schema import Record, SchemaError, find, not_of_kind, parse_record, parse_schema

if TYPE_CHECKING:
    import ssl
    from urllib.request import Request

ACCEPT = "application/vnd.schemaregistry.v1+json, application/json;q=0.9, */*;q=0.5"
TIMEOUT_SECONDS = 10.0
# The number of times that each address is asked, and the pause between, before a message fails with its batch.
ATTEMPTS = 3
PAUSE_SECONDS = 0.5
MAX_ANSWER_BYTES = 1 << 25
MAX_REFERENCES = 1000
AVRO = "AVRO"
# The header that names the language of a schema where the answer is the schema itself.
KIND_HEADER = "X-Registry-ArtifactType"

# The most readers of schemas that are kept, and the seconds for which an unknown number stays unknown.
MOST_SCHEMAS = 1000
UNKNOWN_SECONDS = 60.0


class RegistryFailed(Exception):
    """Raised if the registry does not say whether it has a schema; the message says why. Work that needs the schema can
    be tried again.
    """


def numbered_decoder(layout: Layout, numbers: Numbers, folder: str) -> Callable[[bytes, str | None], Found]:
    """Returns the function that reads a message: with the schema given with the message, else with that of its number.
    Answers of a registry are kept in `folder`. The function raises RegistryFailed if the registry does not answer.
    """
    schemas = NumberedSchemas(layout, numbers, folder)
    own = lru_cache(REMEMBERED)(partial(own_decoder, layout))
    nothing = [None] * len(layout.slots)
    before = 1 + numbers.bytes

    def decode(message: bytes, schema: str | None) -> Found:
        if schema is not None:
            return own(schema)(message)
        if len(message) < before:
            return Found(nothing, "bad-avro", f"{len(message)} bytes, but {before} come before a record")
        if message[0]:
            why = f"its first byte is {message[0]}; before the number of a schema there is a zero"
            return Found(nothing, "bad-avro", why)
        return schemas.decoder(int.from_bytes(message[1:before], "big"))(message)

    return decode


class NumberedSchemas:
    """Makes readers of messages by the numbers of their schemas, each looked up when a message first has it."""

    def __init__(self, layout: Layout, numbers: Numbers, folder: str) -> None:
        self.layout, self.numbers = replace(layout, skip_bytes=1 + numbers.bytes), numbers
        self.registry = RegistrySchemas(numbers.registry, folder) if numbers.registry else None
        self.decoders: dict[int, Decode] = {}
        # Number -> the time at which it was last looked up and not found.
        self.unknown: dict[int, float] = {}

    def decoder(self, number: int) -> Decode:
        """Returns the function that reads messages with this number; raises RegistryFailed."""
        known = self.decoders.get(number)
        if known is None or (number in self.unknown and time.monotonic() > self.unknown[number] + UNKNOWN_SECONDS):
            known = self._made(number)
            if len(self.decoders) >= MOST_SCHEMAS:
                self.decoders.clear()
                self.unknown.clear()
            self.decoders[number] = known
        return known

    def _made(self, number: int) -> Decode:
        self.unknown.pop(number, None)
        try:
            schema = self._schema(number)
            if schema is not None:
                return record_decoder(self._complete(schema), self.layout)
        except (SchemaError, RecursionError) as error:
            return refusing(
                self.layout, "schema-mismatch", f"the schema with the number {number} cannot be used: {error}"
            )
        self.unknown[number] = time.monotonic()
        where = "the schema registry has none" if self.registry else f'there is no file "{number}.avsc"'
        return refusing(self.layout, "schema-unknown", f"no schema has the number {number}: {where}")

    def _schema(self, number: int) -> Record | None:
        text = self.numbers.known.get(number)
        if text is not None:
            return parse_schema(text)
        found = self.registry.get(number) if self.registry else None
        return _record(found) if found else None

    def _complete(self, schema: Record) -> Record:
        """Returns the schema; raises SchemaError if it lacks a field that is required."""
        for path, kind in self.numbers.required:
            found = find(schema, path)
            if not found:
                raise SchemaError(f'it has no field "{".".join(path)}"')
            if what := not_of_kind(found, path, kind):
                raise SchemaError(f'"{".".join(path)}" is not a {what}')
        return schema


def _record(written: Written) -> Record:
    if written.kind != AVRO:
        raise SchemaError(f"its language is {written.kind}, not {AVRO}")
    return parse_record(written.schema, written.references)


# --- a registry


@dataclass(frozen=True)
class Written:
    """The answer of a registry for a number. `schema` is the text of a schema. `references` are the texts of the
    schemas that it uses, each after those that it uses itself. `kind` is the language of the schema.
    """

    schema: str
    references: tuple[str, ...] = ()
    kind: str = AVRO


class RegistrySchemas:
    """The schemas of a registry. Answers are kept in `folder`, or in a folder of this machine if that is empty. Without
    a folder that can be written, each new object of this class asks the registry again.
    """

    def __init__(self, registry: Registry, folder: str) -> None:
        self.registry = registry
        places = hashlib.sha256(repr((registry.urls, registry.path)).encode()).hexdigest()[:16]
        inside = folder or _own_folder()
        self.folder = inside and os.path.join(inside, places)
        self.context: ssl.SSLContext | None = None

    def get(self, number: int) -> Written | None:
        """Returns the schema that has a number; None if there is no such number. Raises RegistryFailed."""
        path = self.folder and os.path.join(self.folder, f"{number}.json")
        kept = _kept(path) if path else None
        if kept:
            return kept
        found = self._asked(number)
        if found and path:
            _keep(path, found)
        return found

    def _asked(self, number: int) -> Written | None:
        answer = self._answer(self.registry.path.replace("{number}", str(number)), f"schema {number}")
        if answer is None:
            return None
        if not _is_wrapped(answer):
            return Written(json.dumps(answer))
        kind = str(answer.get("schemaType") or AVRO).upper()
        references = tuple(self._references(answer, set())) if kind == AVRO else ()
        return Written(answer["schema"], references, kind)

    def _references(self, answer: dict[str, Any], seen: set[tuple[str, str]]) -> Iterator[str]:
        """Returns the texts of the schemas that a schema uses, each once, after those that it uses itself."""
        references = answer.get("references") or []
        if not isinstance(references, list):
            raise RegistryFailed("the schema registry does not say which schemas another uses")
        for reference in references:
            try:
                place = str(reference["subject"]), str(reference["version"])
            except (TypeError, KeyError):
                raise RegistryFailed("the schema registry names a schema without its subject and version") from None
            if place in seen:
                continue
            seen.add(place)
            if len(seen) > MAX_REFERENCES:
                raise RegistryFailed(f"a schema of the registry uses more than {MAX_REFERENCES} others")
            what = 'version {} of "{}"'.format(*reversed(place))
            path = "subjects/{}/versions/{}?deleted=true".format(*(quote(part, safe="") for part in place))
            inner = self._answer(path, what)
            if inner is None or not _is_wrapped(inner):
                raise RegistryFailed(f"the schema registry does not have {what}, which another schema uses")
            yield from self._references(inner, seen)
            yield inner["schema"]

    def _answer(self, path: str, what: str) -> Any:
        """Returns the JSON at a path; None if the registry says that it has nothing. Each address is tried several
        times.
        """
        failures: list[str] = []
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(PAUSE_SECONDS * attempt)
            failures = []
            for url in self.registry.urls:
                try:
                    return self._answer_of(f"{url.rstrip('/')}/{path}")
                except _Refused as refused:
                    raise RegistryFailed(f"the schema registry at {url} does not give {what}: {refused}") from None
                except (OSError, ValueError) as error:
                    failures.append(f"the schema registry at {url} does not give {what}: {_words(error)}")
        raise RegistryFailed("; ".join(failures))

    def _answer_of(self, address: str) -> Any:
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import urlopen

        try:
            with urlopen(self._request(address), timeout=TIMEOUT_SECONDS, context=self._tls(address)) as response:
                kind = response.headers.get(KIND_HEADER, AVRO)
                content = response.read(MAX_ANSWER_BYTES + 1)
        except HTTPError as error:
            with error:
                return _without_schema(error.code, error.read(MAX_ANSWER_BYTES))
        except HTTPException as error:
            raise OSError(f"{type(error).__name__} {error}") from None
        if len(content) > MAX_ANSWER_BYTES:
            raise _Refused(f"its answer has more than {MAX_ANSWER_BYTES} bytes")
        if kind.upper() != AVRO:
            return {"schema": "", "schemaType": kind}
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise _Refused("its answer is not JSON; is the address that of its API?") from None

    def _request(self, address: str) -> Request:
        from urllib.request import Request

        request = Request(address, headers={"Accept": ACCEPT})
        if self.registry.login:
            login = base64.b64encode(self.registry.login.encode()).decode()
            # The login is not sent on to another address, if the answer redirects.
            request.add_unredirected_header("Authorization", f"Basic {login}")
        return request

    def _tls(self, address: str) -> ssl.SSLContext | None:
        if not address.startswith("https:"):
            return None
        if self.context is None:
            self.context = tls_context(self.registry)
        return self.context


class _Refused(Exception):
    """Raised for an answer that will be the same the next time."""


def _is_wrapped(answer: Any) -> bool:
    """Returns True if an answer is an object that contains a schema's text; other registries answer with the schema."""
    return isinstance(answer, dict) and isinstance(answer.get("schema"), str)


def _without_schema(status: int, content: bytes) -> None:
    """Returns if an answer says that there is no such schema. Raises _Refused for any other refusal, and OSError for a
    failure that may pass.
    """
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        said = None
    said = said if isinstance(said, dict) else {}
    if status == 404:
        # An address outside of the API answers 404 too. Only an unknown schema has such a code or name in its answer.
        code, name = said.get("error_code"), said.get("name")
        if (isinstance(code, int) and code // 100 == 404) or str(name).endswith("NotFoundException"):
            return
        raise _Refused("it answers 404; is the address that of its API?")
    if status in (401, 403):
        raise _Refused(f"it refuses access ({status}); are user and password right?")
    if status == 429 or status >= 500:
        raise OSError(f"it answers {status}")
    raise _Refused(f"it answers {status}")


def _words(error: Exception) -> str:
    return str(getattr(error, "reason", error)) or type(error).__name__


# --- files


def _own_folder() -> str:
    """Returns a folder of this machine that only this user can write to; empty if there is none."""
    path = os.path.join(tempfile.gettempdir(), f"runner-schemas-{os.getuid()}")
    with suppress(OSError):
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
        if found.st_uid == os.getuid() and not found.st_mode & 0o022:
            return path
    return ""


def _kept(path: str) -> Written | None:
    """Returns the answer that was kept in a file; None if there is no file that can be read."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return Written(str(found["schema"]), tuple(map(str, found["references"])), str(found["kind"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _keep(path: str, written: Written) -> None:
    """Writes a file, whole or not at all. If the file cannot be written, the registry is asked again."""
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        handle, part = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".part-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"kind": written.kind, "references": written.references, "schema": written.schema}, file)
            os.replace(part, path)
        except OSError:
            os.unlink(part)
