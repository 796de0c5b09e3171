"""A schema registry for tests: what its HTTP API answers, and which calls came. As its makers document it, not as this
project reads it.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

UNKNOWN = {"error_code": 40403, "message": "Schema not found"}


@dataclass
class Registry:
    """`answers` are path -> status and JSON, or text as it is; other paths are answered as a server without such a page
    does. `calls` are the paths that were asked for, `logins` the headers that came with them.
    """

    url: str = ""
    login: str = ""
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)
    failures: int = 0
    server: ThreadingHTTPServer | None = None

    def add(self, number: int, schema: object, **members: object) -> None:
        """Registers a schema under a number."""
        self.answers[f"/schemas/ids/{number}"] = 200, {"schema": json.dumps(schema), **members}

    def add_version(self, subject: str, version: int, schema: object, **members: object) -> None:
        """Registers the version of a subject."""
        body = {"subject": subject, "version": version, "id": 1, "schema": json.dumps(schema), **members}
        self.answers[f"/subjects/{subject}/versions/{version}"] = 200, body

    def answer(self, path: str, login: str | None) -> tuple[int, Any]:
        self.calls.append(path)
        self.logins.append(login)
        if self.login and login != "Basic " + base64.b64encode(self.login.encode()).decode():
            return 401, {"error_code": 401, "message": "Unauthorized"}
        if self.failures:
            self.failures -= 1
            return 500, {"error_code": 50001, "message": "Error in the backend data store"}
        place = unquote(urlsplit(path).path)
        if place.startswith("/schemas/ids/"):
            return self.answers.get(place, (404, UNKNOWN))
        return self.answers.get(place, (404, "<html>no such page</html>"))


@contextmanager
def registry_server(
    login: str = "", certificate: Path | None = None, callers: Path | None = None
) -> Iterator[Registry]:
    """A registry on this machine; over TLS if there is a PEM file with its certificate and key. If there is a file of
    `callers`, only those are let in whose certificate is signed by one in it.
    """
    registry = Registry(login=login)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(self.path, self.headers.get("Authorization"))
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in registry.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    scheme = "http"
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        if callers:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(callers)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    registry.url, registry.server = f"{scheme}://127.0.0.1:{server.server_port}", server
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
