# SPDX-License-Identifier: MIT
"""Routes: which handler answers which path, who may request it, and what it is given.

A handler runs on one of the server's threads, not on the daemon's: it reads what the
last tick left (`Snapshot`), and no tick waits for it.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

Method = Literal["GET", "POST"]
PLAIN = "text/plain; charset=utf-8"
JSON = "application/json"
HTML = "text/html; charset=utf-8"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_FINAL_NAME = "/{name}"


class Access(enum.Enum):
    """Who may request a route."""

    ANYONE = "anyone"
    """Anyone who can connect, without a token; for routes that only tell whether the
    daemon is well."""
    TOKEN = "token"  # noqa: S105 - the name of a kind of access
    """Clients with the token; if none is set, anyone who can connect."""
    OWNER = "owner"
    """Clients with the token; if none is set, clients of the Unix socket, to which only
    the daemon's user can connect. For what only the instance owner may read or do."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler is given."""

    path: str
    name: str = ""
    """The text for `{name}` in the path of the route: letters, digits, and `._-`; empty
    if the route has no name."""
    query: Mapping[str, str] = {}
    body: bytes = b""


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler returns."""

    body: bytes
    status: int = 200
    content_type: str = PLAIN
    headers: Mapping[str, str] = {}


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One path. A GET route answers HEAD, too."""

    path: str
    """The path, such as `/status`, or `/things/{name}` with one name at the end."""
    handler: Callable[[HttpRequest], HttpResponse]
    access: Access = Access.OWNER
    method: Method = "GET"
    body_limit: int = 0
    """Largest body of a POST, in bytes."""


class Routes:
    """The table of routes. Raises ValueError for two routes of one method and path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes: dict[str, dict[str, Route]] = {}
        self.longest_body = 0
        """Largest body that any route takes, in bytes."""
        for route in routes:
            methods = self._routes.setdefault(route.path, {})
            if route.method in methods:
                raise ValueError(f"two routes for {route.method} {route.path}")
            methods[route.method] = route
            self.longest_body = max(self.longest_body, route.body_limit)

    def find(self, path: str) -> tuple[Mapping[str, Route], str]:
        """Return the routes of a path by method, and the name in it.

        Paths are compared as they are written: nothing in them is decoded or resolved.
        Returns no routes for an unknown path.
        """
        known = self._routes.get(path)
        if known is not None and not path.endswith(_FINAL_NAME):
            return known, ""
        above, _, name = path.rpartition("/")
        known = self._routes.get(above + _FINAL_NAME)
        if known is None or not _NAME.fullmatch(name):
            return {}, ""
        return known, name


def json_response(row: object) -> HttpResponse:
    """Return a response with a value as JSON."""
    return HttpResponse(body=msgspec.json.encode(row) + b"\n", content_type=JSON)


def text_response(text: str, status: int = 200) -> HttpResponse:
    """Return a response with a line of plain text."""
    return HttpResponse(body=f"{text}\n".encode(), status=status)


def is_token(header: str, token: bytes, *, basic: bool) -> bool:
    """Tell whether a header `Authorization` has the token.

    The token may come as `Bearer TOKEN`; with `basic` also as the password of `Basic`
    with any name, for which a browser asks a person. The time of the comparison does
    not show how much of a wrong token is right.
    """
    scheme, _, sent = header.partition(" ")
    given = sent.strip().encode("utf-8", "surrogateescape")
    if scheme.lower() == "basic" and basic:
        try:
            given = base64.b64decode(given, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(given, token)
