"""Servers on this machine that get what is posted, and answer as a test wants."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Server:
    """A server that answers with some codes, one after the other, the last one again and again; 0 is none."""

    def __init__(self, *codes: int) -> None:
        self.codes, self.posted, self.headers = list(codes), list[Any](), list[Any]()
        self.lets_go = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.headers.append(dict(self.headers))
                server.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                code = server.codes.pop(0) if len(server.codes) > 1 else server.codes[0]
                if code == 0:
                    server.lets_go.wait(60)
                    return
                self.send_response(code)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/secret-path"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.lets_go.set()
        self.server.shutdown()
        self.server.server_close()
