# SPDX-License-Identifier: MIT
"""`[http]`: where the daemon answers HTTP requests, and who may send them."""

from __future__ import annotations

import re

import msgspec

from burst.config.convert import Table
from burst.errors import ConfigError
from burst.model.host import is_loopback

_EXAMPLES = 'such as "127.0.0.1:9779", "[::1]:9779" or "unix:/run/burst/flux/http"'
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})")
LONGEST_PATH = 100
"""The longest path of a Unix socket, in bytes: the kernel takes 107 (unix(7))."""


class HttpSettings(Table, frozen=True):
    """`[http]`: health, metrics and status of the daemon over HTTP."""

    listen: str = ""
    """Address and port such as "127.0.0.1:9779", or the path of a Unix socket such as
    "unix:/run/burst/flux/http". None by default: the daemon does not listen. Port 0
    takes any free port; the log says which. A change needs a restart of the daemon."""
    token_file: str = ""
    """Path of a file with the token that clients send as `Authorization: Bearer`.
    Required if the address is not a loopback address. Without a token only metrics and
    health are served over TCP, since any user of this host may connect."""


class ListenAddress(msgspec.Struct, frozen=True):
    """An address to listen on: the path of a Unix socket, or a host and a port."""

    path: str = ""
    host: str = ""
    port: int = 0

    @property
    def is_local(self) -> bool:
        """Whether only processes of this host can connect."""
        return bool(self.path) or is_loopback(self.host)

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else self._plain

    @property
    def _plain(self) -> str:
        return f"{self.host}:{self.port}"


def parse_listen(text: str) -> ListenAddress:
    """Return the address in `[http] listen`. Raises ValueError with what is valid."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path.startswith("/") or "\0" in path:
            raise ValueError("the path of a Unix socket begins with /")
        if len(path.encode()) > LONGEST_PATH:
            raise ValueError(f"the path is longer than {LONGEST_PATH} bytes")
        return ListenAddress(path=path)
    found = _HOST_AND_PORT.fullmatch(text)
    if found is None or int(found[2]) > 65535:
        raise ValueError("expected an address and a port")
    return ListenAddress(host=found[1].strip("[]"), port=int(found[2]))


def check_http(http: HttpSettings, where: str) -> None:
    """Raise ConfigError for an invalid address, or one that needs a token."""
    if not http.listen:
        return
    try:
        address = parse_listen(http.listen)
    except ValueError as error:
        raise ConfigError(f"{where}: http.listen: {error}", _EXAMPLES) from None
    if not address.is_local and not http.token_file:
        raise ConfigError(
            f"{where}: http.listen: {http.listen} can be reached from other hosts, and"
            " http.token_file is not set",
            "write a token to a file that only the daemon's user can read (`umask 077;"
            " openssl rand -hex 32 > FILE`) and name it, or listen on 127.0.0.1",
        )
