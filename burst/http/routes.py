# SPDX-License-Identifier: MIT
"""Routes: which handler answers which path, who may ask it, and what it is given.

A handler runs on one of the server's threads, and not on the daemon's: it reads what
the last tick left (`Snapshot`), and no tick waits for it.
"""

from __future__ import annotations

import enum
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
    """Who may ask a route."""

    ANYONE = "anyone"
    """Whoever can connect, without a token: what says only how the daemon is."""
    TOKEN = "token"  # noqa: S105 - the name of a kind of access
    """Who has the token, if one is set. Without one, whoever can connect."""
    OWNER = "owner"
    """Who has the token or, without one, connects to the Unix socket, which only the
    daemon's user can. For what only the instance owner may read or do."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler is given."""

    path: str
    name: str = ""
    """What stands for `{name}` in the path of the route: letters, digits, and `._-`."""
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
    """Such as `/status`, or `/things/{name}`: one name at the end."""
    handler: Callable[[HttpRequest], HttpResponse]
    access: Access = Access.OWNER
    method: Method = "GET"
    body_limit: int = 0
    """Of a POST, in bytes."""


class Routes:
    """The table of routes. Two of one method and path are refused (ValueError)."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes: dict[str, dict[str, Route]] = {}
        self.longest_body = 0
        """In bytes, that any route takes."""
        for route in routes:
            methods = self._routes.setdefault(route.path, {})
            if route.method in methods:
                raise ValueError(f"two routes for {route.method} {route.path}")
            methods[route.method] = route
            self.longest_body = max(self.longest_body, route.body_limit)

    def find(self, path: str) -> tuple[Mapping[str, Route], str]:
        """Return the routes of a path by method, and the name in it.

        Paths are compared as they are, nothing in them is decoded or resolved: what is
        written in another way is no route. Returns no routes for an unknown path.
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
    """Return a value as JSON."""
    return HttpResponse(body=msgspec.json.encode(row) + b"\n", content_type=JSON)


def text_response(text: str, status: int = 200) -> HttpResponse:
    """Return a sentence."""
    return HttpResponse(body=f"{text}\n".encode(), status=status)
