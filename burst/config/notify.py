# SPDX-License-Identifier: MIT
"""`[notify]`: who is told of what a person must know."""

from __future__ import annotations

from urllib.parse import urlsplit

from burst.config.convert import Seconds, Table
from burst.config.http import is_loopback
from burst.errors import ConfigError

_MOST_TIMEOUT_S = 300.0


class NotifySettings(Table, frozen=True):
    """`[notify]`: notices of what a person must know, each told once."""

    command: tuple[str, ...] = ()
    """A program and its arguments, which is given each notice as a line of JSON on its
    standard input. It has told it if it exits with status 0. None by default."""
    webhook: str = ""
    """URL to which each notice is posted as JSON, with https. None by default."""
    webhook_file: str = ""
    """Path of a file with that URL, for services whose URLs are secrets. It has mode
    0600 or 0400, as `token_file`."""
    token_file: str = ""
    """Path of a file with a token, sent with each post as `Authorization: Bearer`."""
    timeout: Seconds = Seconds(10)
    """How long the program, or the post, may take. It is tried again after that; the
    daemon's ticks never wait for it."""


def check_notify(notify: NotifySettings, where: str) -> None:
    """Raise ConfigError for what cannot be, or would tell a secret."""
    if notify.command and not notify.command[0]:
        raise ConfigError(
            f"{where}: notify.command: names no program",
            'such as command = ["/usr/local/bin/page", "--team", "hpc"]',
        )
    if notify.webhook and notify.webhook_file:
        raise ConfigError(
            f"{where}: notify.webhook_file: notify.webhook is set, too",
            "leave out one of the two",
        )
    if notify.webhook:
        why = why_no_webhook(notify.webhook)
        if why:
            raise ConfigError(f"{where}: notify.webhook: {why}", _RIGHT)
    if notify.token_file and not (notify.webhook or notify.webhook_file):
        raise ConfigError(
            f"{where}: notify.token_file: there is no webhook that it is for",
            "set notify.webhook, or leave it out",
        )
    if not 0 < notify.timeout <= _MOST_TIMEOUT_S:
        raise ConfigError(
            f"{where}: notify.timeout: {notify.timeout} is out of range",
            "more than 0, at most 5m",
        )


_RIGHT = 'such as "https://alerts.site.org/burst"; http only to this host'


def why_no_webhook(url: str) -> str:
    """Return why notices cannot be posted to a URL, which is not in it; else ''."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "is no URL"
    if parts.scheme not in ("http", "https") or not host or not url.isprintable():
        return "is no URL of http or https"
    if parts.username or parts.password:
        return "has a password in it; put it into token_file"
    if parts.scheme == "http" and not is_loopback(host):
        return "would send what it tells in the clear"
    return ""
