# SPDX-License-Identifier: MIT
"""`[notify]`: who gets notices of what a person must know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import urlsplit

from burst.config.convert import Table
from burst.errors import ConfigError
from burst.model.host import is_loopback


class NotifySettings(Table, frozen=True):
    """`[notify]`: notices of what a person must know, each sent once."""

    command: tuple[str, ...] = ()
    """A program and its arguments; it gets each notice as a line of JSON on standard
    input. The notice counts as sent if the program exits with status 0. None by
    default."""
    webhook: str = ""
    """URL to which each notice is posted as JSON, with https; or the absolute path of a
    file with that URL, for services whose URLs are secrets. The file must have mode
    0600 or 0400, as `token_file`. None by default."""
    token_file: str = ""
    """Path of a file with a token, sent with each post as `Authorization: Bearer`."""

    retired: ClassVar[Mapping[str, str]] = {
        "timeout": "remove it: a program or a post has 10s, and is then tried again",
        "webhook_file": "write the path of the file as webhook",
    }

    @property
    def webhook_is_file(self) -> bool:
        """Whether `webhook` is the path of a file with the URL."""
        return self.webhook.startswith("/")


def check_notify(notify: NotifySettings, where: str) -> None:
    """Raise ConfigError for a value that is invalid or would expose a secret."""
    if notify.command and not notify.command[0]:
        raise ConfigError(
            f"{where}: notify.command: names no program",
            'such as command = ["/usr/local/bin/page", "--team", "hpc"]',
        )
    if notify.webhook and not notify.webhook_is_file:
        why = why_no_webhook(notify.webhook)
        if why:
            raise ConfigError(f"{where}: notify.webhook: {why}", _RIGHT)
    if notify.token_file and not notify.webhook:
        raise ConfigError(
            f"{where}: notify.token_file: there is no webhook to send it to",
            "set notify.webhook, or leave it out",
        )


_RIGHT = 'such as "https://alerts.site.org/burst"; http only to this host'


def why_no_webhook(url: str) -> str:
    """Return why notices cannot be posted to a URL, without the URL itself; else ''."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https") or not host or not url.isprintable():
        return "is not a URL of http or https"
    if parts.username or parts.password:
        return "has a password in it; put it into token_file"
    if parts.scheme == "http" and not is_loopback(host):
        return "would send notices in the clear"
    return ""
