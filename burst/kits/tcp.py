# SPDX-License-Identifier: MIT
"""Tries a TCP connection to the lead from where followers run, and reports the error.

    argv = ["ssh", host, shlex.join(tcp.command(lead.endpoint, "python3"))]
    ended = subprocess.run(argv, ...)
    yield tcp.judge(ended.returncode, ended.stdout, lead.endpoint, host)

It only connects, so it needs no secret and leaves nothing behind.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from burst.errors import Refused
from burst.kits.shorten import shorten
from burst.model.finding import Finding, note, ok, wrong

NO_PROGRAM = 2
"""Exit status if there is neither the given Python nor bash."""
UNKNOWN = "check that the command runs there"
"""The advice if the command's output is not a known error."""
_LONGEST_WORDS = 400
# It tries three times, as DNS and firewall rules may reach a new host a moment later.
# Flux has a Python; an image into which the operator copies Flux has bash.
SCRIPT = """\
host=$1 port=$2
shift 2
LC_ALL=C
export LC_ALL
if command -v "$1" > /dev/null; then
  set -- "$@" -c '
import socket, sys
try:
    socket.create_connection(sys.argv[1:])
except OSError as error:
    sys.exit(str(error))'
elif command -v bash > /dev/null; then
  set -- bash -c ': <> "/dev/tcp/$0/$1"'
else
  exit 2
fi
for pause in 1 1 0; do
  said=$("$@" "$host" "$port" 2>&1) && exit 0
  sleep $pause
done
printf '%s\\n' "$said"
exit 1
"""
"""The script for `sh -c SCRIPT sh HOST PORT PYTHON...`. It prints the error to standard
output."""
# The C library's error text, which bash and Python print; our message; the advice.
_MESSAGES = tuple(
    (re.compile(pattern, re.IGNORECASE), words, advice)
    for pattern, words, advice in (
        (
            r"refused",
            "nothing listens there",
            "check that the lead runs, and that address and port under [lead] are those"
            " of its host or its Service",
        ),
        (
            r"resol|not known|try again|no address associated",
            "its name cannot be resolved there",
            "set address under [lead] to a name that {them} there can resolve, or to"
            " an IP address",
        ),
        (
            r"timed out",
            "there is no answer",
            "allow {them} there to connect to that port: a firewall or a NetworkPolicy"
            " drops the connection, or the address is wrong for them",
        ),
        (
            r"no route|unreachable",
            "there is no route to it",
            "set address under [lead] to one that can be reached from that network",
        ),
    )
)


def arguments(endpoint: str, *python: str) -> list[str]:
    """Return the arguments of SCRIPT for `tcp://ADDRESS:PORT`.

    `python` is the command of a Python there. Raises Refused without an address.
    """
    where = urlsplit(endpoint)
    if not where.hostname or not where.port:
        raise Refused(
            "the address that followers connect to is not known",
            "set address and port under [lead]",
        )
    return [where.hostname, str(where.port), *python]


def command(endpoint: str, *python: str) -> list[str]:
    """Return the whole command. It has no time limit other than the system's own.

    Raises Refused without an address.
    """
    return ["/bin/sh", "-c", SCRIPT, "sh", *arguments(endpoint, *python)]


def judge(
    status: int, said: str, endpoint: str, who: str, them: str = "hosts"
) -> Finding:
    """Return the finding for a command that has ended. `who` names where it ran."""
    if status == 0:
        return ok(f"{who} reaches {endpoint}")
    if status == NO_PROGRAM:
        return note(
            f"cannot try whether {who} reaches {endpoint}: there is neither bash nor"
            " Python",
            "the first burst will show it",
        )
    for pattern, words, advice in _MESSAGES:
        if pattern.search(said):
            what = f"{who} does not reach {endpoint}: {words}"
            return wrong(what, advice.format(them=them))
    why = shorten(said, _LONGEST_WORDS) or f"it ended with exit status {status}"
    return wrong(f"{who} does not reach {endpoint}: {why}", UNKNOWN)


def judge_silence(
    seconds: float, endpoint: str, who: str, them: str = "hosts"
) -> Finding:
    """Return the finding for a command that has not ended after `seconds`."""
    _, words, advice = next(s for s in _MESSAGES if s[0].search("timed out"))
    what = f"{who} does not reach {endpoint}: {words} within {seconds:g} s"
    return wrong(what, advice.format(them=them))
