"""A server for one page and one person: on this machine alone, behind a token, with a fixed table of paths.

Every request must name the token in its path and this server in its Host header, so that neither another user of the
machine nor a page of another site (by a name that it points at 127.0.0.1) gets an answer. Paths are keys of a table:
nothing is looked up in the file system.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import urlsplit

ADDRESS = "127.0.0.1"

MAX_BODY = 100_000
"""Bytes that a request may send."""

PATIENCE = 30.0
"""Seconds until a connection that sends nothing is closed."""

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Reply:
    """What a request is answered with."""

    body: bytes
    kind: str = "text/html; charset=utf-8"
    download: str = ""  # the name of the file, if the browser is to keep it

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Reply:
        """Return a record as JSON."""
        return cls(json.dumps(record, allow_nan=False).encode(), "application/json")


class _RefusedError(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


Route = Callable[[str, bytes], Reply | None]
"""From the query of an address and the body of a request to the reply; None if it makes no sense."""


class LoopbackServer(ThreadingHTTPServer):
    """Answers requests by their method and path, such as ("GET", "progress"); a thread for each.

    Parameters
    ----------
    routes
        By method and path.
    """

    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, routes: Mapping[tuple[str, str], Route]) -> None:
        self.routes, self.token = dict(routes), secrets.token_urlsafe(24)
        super().__init__((ADDRESS, 0), _Handler)

    def server_bind(self) -> None:
        """Take a port that is free; no name is looked up, as the parent class does."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    @property
    def host(self) -> str:
        """What the Host header of every request must be."""
        return f"{ADDRESS}:{self.server_port}"

    @property
    def url(self) -> str:
        """The address of the page, which holds the token."""
        return f"http://{self.host}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: LoopbackServer
    server_version, sys_version, timeout = "cmpg", "", PATIENCE

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        try:
            body = self._body()
        except _RefusedError as refusal:
            return self._refuse(refusal.status)
        return self._answer(body)

    def _answer(self, body: bytes) -> None:
        try:
            route, query = self._route()
        except _RefusedError as refusal:
            return self._refuse(refusal.status)
        reply = route(query, body)
        if reply is None:
            return self._refuse(HTTPStatus.BAD_REQUEST)
        return self._send(HTTPStatus.OK, reply)

    def _route(self) -> tuple[Route, str]:
        """Return what answers this request, or raise: the same for a wrong host, origin and token."""
        hosts, origins = self.headers.get_all("Host", []), self.headers.get_all("Origin", [])
        address = urlsplit(self.path)
        _, _, rest = address.path.partition("/")
        token, slash, name = rest.partition("/")
        known = hmac.compare_digest(token.encode(), self.server.token.encode())
        if hosts != [self.server.host] or not set(origins) <= {f"http://{self.server.host}"} or not (known and slash):
            raise _RefusedError(HTTPStatus.FORBIDDEN)
        route = self.server.routes.get((self.command, name))
        if route is None:
            raise _RefusedError(HTTPStatus.NOT_FOUND)
        return route, address.query

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED)
        if len(length) > 9 or int(length) > MAX_BODY:
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return self.rfile.read(int(length))

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(status, Reply(f"{status.phrase}\n".encode(), "text/plain; charset=utf-8"))

    def _send(self, status: HTTPStatus, reply: Reply) -> None:
        headers = HEADERS | {"Content-Type": reply.kind, "Content-Length": str(len(reply.body))}
        if reply.download:
            headers["Content-Disposition"] = f'attachment; filename="{reply.download}"'
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)
        except ConnectionError:  # the reader has gone away, and wants no answer any more
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: an address has the token in it."""
