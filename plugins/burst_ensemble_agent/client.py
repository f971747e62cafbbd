# SPDX-License-Identifier: MIT
"""Send an agent's reports to the daemon: one POST for each report, with the token.

A redirect is not followed, because the token would go to the new address. With http the
token goes in the clear, so another host needs the option `--plain-http`.
"""

from __future__ import annotations

import http.client
import logging
import ssl
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import msgspec

from burst import log
from burst.decode import from_json
from burst.errors import BurstError, ConfigError
from burst.kits.secret_file import read_secret
from burst.model.host import is_loopback
from burst.runtime.timed_post import post
from burst_ensemble_agent.report import (
    AGENT_PATH,
    REPORT_VERSION,
    AgentAnswer,
    AgentReport,
)

_TIMEOUT_S = 10.0
_SAID_BYTES = 1000


class AgentTrouble(BurstError):
    """The daemon cannot be reached, or did not take the report. Try again."""


class AgentClient:
    """Posts reports to one daemon."""

    def __init__(
        self, url: str, token_file: str, authority: str = "", *, plain: bool = False
    ) -> None:
        """`authority` is a file with the certificates to trust; default: the system's.

        `plain` allows sending the token to another host in the clear. Raises
        ConfigError.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise ConfigError(
                f"{url!r} is not the URL of a daemon", "such as https://HOST:9779"
            )
        clear = parts.scheme == "http" and not is_loopback(parts.hostname)
        if clear and not plain:
            raise ConfigError(
                f"--daemon: {url} would send the token in the clear to another host",
                "use https, with a proxy in front of the daemon that terminates TLS; or"
                " use --plain-http if nobody can read the traffic between the two",
            )
        if clear:
            log.say(
                "the token is sent in the clear to %s (--plain-http)",
                parts.hostname,
                level=logging.WARNING,
            )
        if parts.username is not None:
            raise ConfigError(
                "the URL has a password", "name the file of the token with --token-file"
            )
        self._url = url.rstrip("/")
        self._token_file = token_file
        self._token()
        self._context: ssl.SSLContext | None = None
        if parts.scheme == "https":
            try:
                self._context = ssl.create_default_context(cafile=authority or None)
            except OSError as error:
                raise ConfigError(f"{authority}: {error}") from error

    def post(self, about: str, report: AgentReport) -> AgentAnswer:
        """Return the daemon's answer to a report about ENSEMBLE.MEMBER.

        Raises AgentTrouble, ConfigError.
        """
        request = urllib.request.Request(  # noqa: S310 - of scheme http or https
            f"{self._url}{AGENT_PATH}{about}",
            data=msgspec.json.encode(report),
            headers={
                "Authorization": f"Bearer {self._token()}",
                "Content-Type": "application/json",
            },
            method="POST",
        )
        try:
            body = post(request, _TIMEOUT_S, self._context, reads=True)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read(_SAID_BYTES).decode("utf-8", "replace").strip()
            raise AgentTrouble(
                f"the daemon did not accept the report ({error.code}): {text}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "reason", None) or error
            raise AgentTrouble(
                f"the daemon at {self._url} cannot be reached: {why}",
                "it listens at the address of [http] listen",
            ) from error
        return _read_answer(body)

    def _token(self) -> str:
        """Return the token, read each time because it may have been replaced."""
        return read_secret(self._token_file, "--token-file").decode()


def _read_answer(body: bytes) -> AgentAnswer:
    try:
        answer = from_json(body, AgentAnswer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise AgentTrouble(
            f"what answered is not a daemon: {error}", "check the URL"
        ) from error
    if answer.version != REPORT_VERSION:
        raise AgentTrouble(
            f"the daemon answers in version {answer.version}, and this agent knows"
            f" version {REPORT_VERSION}",
            "install the daemon's version of burst beside the agent",
        )
    return answer
