"""A REST catalog of Iceberg: HTTP here, and behind it what Iceberg's own jar has for the server's side of the protocol,
over a catalog in a file.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError

from tests.engines import HOST

SEPARATOR = "\x1f"  # between the levels of a namespace
TOKEN = "token-of-the-catalog"
STATUS = {
    **dict.fromkeys((f"NoSuch{what}Exception" for what in ("Namespace", "Table", "View")), 404),
    **dict.fromkeys(("AlreadyExistsException", "CommitFailedException", "NamespaceNotEmptyException"), 409),
    **dict.fromkeys(("ValidationException", "BadRequestException", "IllegalArgumentException"), 400),
}
NAMESPACE = "/namespaces/{namespace}"
# Method and path -> what Iceberg's handler is called, and the class of the request's body.
ROUTES = {
    ("GET", "/namespaces"): ("listNamespaces", None),
    ("POST", "/namespaces"): ("createNamespace", "CreateNamespaceRequest"),
    ("HEAD", NAMESPACE): ("namespaceExists", None),
    ("GET", NAMESPACE): ("loadNamespace", None),
    ("DELETE", NAMESPACE): ("dropNamespace", None),
}
for kind in ("Table", "View"):
    all_of_them = f"{NAMESPACE}/{kind.lower()}s"
    one = f"{all_of_them}/{{{kind.lower()}}}"
    ROUTES |= {
        ("GET", all_of_them): (f"list{kind}s", None),
        ("POST", all_of_them): (f"create{kind}", f"Create{kind}Request"),
        ("HEAD", one): (f"{kind.lower()}Exists", None),
        ("GET", one): (f"load{kind}", None),
        ("POST", one): (f"update{kind}", "UpdateTableRequest"),
        ("DELETE", one): (f"drop{kind}", None),
    }


class RestCatalog:
    """A context manager. `jvm` is a gateway to a JVM with Iceberg's jar; `secret` is what a client must show for a
    token.
    """

    def __init__(self, jvm: Any, folder: Path, secret: str) -> None:
        self.jvm, self.secret, self.requests = jvm, secret, set[tuple[str, str]]()
        self.iceberg = jvm.org.apache.iceberg
        self.catalog = self.iceberg.jdbc.JdbcCatalog()
        self.catalog.setConf(jvm.org.apache.hadoop.conf.Configuration())
        places = {"uri": f"jdbc:sqlite:{folder}/served.db", "warehouse": f"file:{folder}/served"}
        self.catalog.initialize("served", places | {"jdbc.schema-version": "V1"})
        self.mapper = _mapper(jvm)

    def __enter__(self) -> RestCatalog:
        self.server = ThreadingHTTPServer((HOST, 0), type("Handler", (_Handler,), {"catalog": self}))
        self.uri = f"http://{HOST}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.catalog.close()

    def answer(self, method: str, path: str, query: str, body: bytes) -> tuple[int, str]:
        """Status and JSON."""
        if path == "/config":
            endpoints = [f"{method} /v1/{{prefix}}{route}" for method, route in ROUTES]
            return 200, json.dumps({"defaults": {}, "overrides": {}, "endpoints": endpoints})
        for (wanted, route), (handler, request) in ROUTES.items():
            found = re.fullmatch(re.sub(r"\{\w+\}", "([^/]+)", route), path)
            if method == wanted and found:
                self.requests.add((method, handler))
                return self._handled(handler, [unquote(part) for part in found.groups()], request, query, body)
        return 404, _error(404, "NotFoundException", f"{method} {path} is not served")

    def _handled(self, handler: str, parts: list[str], request: str | None, query: str, body: bytes) -> tuple[int, str]:
        try:
            result = self._call(handler, parts, request, query, body)
        except Py4JJavaError as error:
            name = error.java_exception.getClass().getSimpleName()
            return STATUS.get(name, 500), _error(STATUS.get(name, 500), name, str(error.java_exception.getMessage()))
        return (204, "") if result is None else (200, self.mapper.writeValueAsString(result))

    def _call(self, handler: str, parts: list[str], request: str | None, query: str, body: bytes) -> Any:
        arguments = [self.iceberg.catalog.Namespace.of(self._strings(parts[0].split(SEPARATOR)))] if parts else []
        if len(parts) == 2:
            arguments = [self.iceberg.catalog.TableIdentifier.of(arguments[0], parts[1])]
        if request:
            arguments.append(self.mapper.readValue(body.decode(), self._class(f"requests.{request}")))
        if handler == "createTable" and arguments[-1].stageCreate():
            handler = "stageTableCreate"
        if handler == "dropTable" and "purgeRequested=true" in query:
            handler = "purgeTable"
        if handler == "listNamespaces":
            arguments = [self.iceberg.catalog.Namespace.empty()]
        if handler == "loadTable":
            modes = self._class("RESTCatalogProperties$SnapshotMode").getEnumConstants()
            arguments.append(next(mode for mode in modes if str(mode) == "ALL"))
        return getattr(self.iceberg.rest.CatalogHandlers, handler)(self.catalog, *arguments)

    def _class(self, name: str) -> Any:
        loader = self.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return self.jvm.java.lang.Class.forName(f"org.apache.iceberg.rest.{name}", True, loader)

    def _strings(self, texts: list[str]) -> Any:
        kind = self.jvm.java.lang.Class.forName("java.lang.String")
        array = self.jvm.java.lang.reflect.Array.newInstance(kind, len(texts))
        for number, text in enumerate(texts):
            array[number] = text
        return array


def _mapper(jvm: Any) -> Any:
    """JSON as the protocol has it; Iceberg's own mapper cannot be reached from outside."""
    jackson = jvm.org.apache.iceberg.shaded.com.fasterxml.jackson
    mapper = jackson.databind.ObjectMapper()
    mapper.setVisibility(jackson.annotation.PropertyAccessor.FIELD, jackson.annotation.JsonAutoDetect.Visibility.ANY)
    mapper.configure(jackson.databind.DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, False)
    mapper.setPropertyNamingStrategy(jackson.databind.PropertyNamingStrategies.KEBAB_CASE)
    jvm.org.apache.iceberg.rest.RESTSerializers.registerAll(mapper)
    return mapper


def _error(status: int, kind: str, message: str) -> str:
    return json.dumps({"error": {"message": message, "type": kind, "code": status}})


class _Handler(BaseHTTPRequestHandler):
    catalog: RestCatalog
    protocol_version = "HTTP/1.1"

    def _do(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._send(*self._answer(url.path.removeprefix("/v1"), url.query, body))

    def _answer(self, path: str, query: str, body: bytes) -> tuple[int, str]:
        if path == "/oauth/tokens":
            if f"client_secret={self.catalog.secret}" in body.decode():
                return 200, json.dumps({"access_token": TOKEN, "token_type": "bearer"})
            return 401, json.dumps({"error": "invalid_client"})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, _error(401, "NotAuthorizedException", "no token")
        return self.catalog.answer(self.command, path, query, body)

    def _send(self, status: int, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_HEAD = do_DELETE = _do

    def log_message(self, *_: object) -> None:
        """Says nothing."""
