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
    "NoSuchNamespaceException": 404,
    "NoSuchTableException": 404,
    "NoSuchViewException": 404,
    "AlreadyExistsException": 409,
    "CommitFailedException": 409,
    "NamespaceNotEmptyException": 409,
    "ValidationException": 400,
    "BadRequestException": 400,
    "IllegalArgumentException": 400,
}
NAMESPACE, TABLE, VIEW = (
    "/namespaces/{namespace}",
    "/namespaces/{namespace}/tables/{table}",
    "/namespaces/{namespace}/views/{view}",
)
# Method and path -> what Iceberg's handler is called, and the class of the request's body.
ROUTES = {
    ("GET", "/namespaces"): ("listNamespaces", None),
    ("POST", "/namespaces"): ("createNamespace", "CreateNamespaceRequest"),
    ("HEAD", NAMESPACE): ("namespaceExists", None),
    ("GET", NAMESPACE): ("loadNamespace", None),
    ("DELETE", NAMESPACE): ("dropNamespace", None),
    ("GET", f"{NAMESPACE}/tables"): ("listTables", None),
    ("POST", f"{NAMESPACE}/tables"): ("createTable", "CreateTableRequest"),
    ("HEAD", TABLE): ("tableExists", None),
    ("GET", TABLE): ("loadTable", None),
    ("POST", TABLE): ("updateTable", "UpdateTableRequest"),
    ("DELETE", TABLE): ("dropTable", None),
    ("GET", f"{NAMESPACE}/views"): ("listViews", None),
    ("POST", f"{NAMESPACE}/views"): ("createView", "CreateViewRequest"),
    ("HEAD", VIEW): ("viewExists", None),
    ("GET", VIEW): ("loadView", None),
    ("POST", VIEW): ("updateView", "UpdateTableRequest"),
    ("DELETE", VIEW): ("dropView", None),
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
        self.catalog.initialize(
            "served",
            {
                "uri": f"jdbc:sqlite:{folder}/served.db",
                "warehouse": f"file:{folder}/served",
                "jdbc.schema-version": "V1",
            },
        )
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
            arguments.append(
                next(
                    mode
                    for mode in self._class("RESTCatalogProperties$SnapshotMode").getEnumConstants()
                    if str(mode) == "ALL"
                )
            )
        return getattr(self.iceberg.rest.CatalogHandlers, handler)(self.catalog, *arguments)

    def _class(self, name: str) -> Any:
        return self.jvm.java.lang.Class.forName(
            f"org.apache.iceberg.rest.{name}", True, self.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        )

    def _strings(self, texts: list[str]) -> Any:
        array = self.jvm.java.lang.reflect.Array.newInstance(
            self.jvm.java.lang.Class.forName("java.lang.String"), len(texts)
        )
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
            known = f"client_secret={self.catalog.secret}" in body.decode()
            return (
                (200, json.dumps({"access_token": TOKEN, "token_type": "bearer"}))
                if known
                else (401, json.dumps({"error": "invalid_client"}))
            )
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
