# SPDX-License-Identifier: MIT
"""Tries from where followers run whether the lead is reached, and says why not.

    argv = ["ssh", host, shlex.join(tcp.command(lead.endpoint, "python3"))]
    ended = subprocess.run(argv, ...)
    yield tcp.judge(ended.returncode, ended.stdout, lead.endpoint, host)

It only connects: no secret is needed there, and nothing is left.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from burst.errors import Refused
from burst.model.finding import Finding, note, ok, wrong

NO_PROGRAM = 2
"""Exit status where there is neither the Python that was named nor bash."""
UNKNOWN = "see that the command runs there"
"""What to do where the command's words mean nothing that is known here."""
_LONGEST_WORDS = 400
# A name or a rule may take a moment to be known to a host that is new, so three times.
# Flux brings a Python; an image over which the operator lays Flux has bash.
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
"""For `sh -c SCRIPT sh HOST PORT PYTHON...`. Standard output says why it failed."""
# What bash and Python say of it, by the C library's texts; then ours, and what to do.
_SAYINGS = tuple(
    (re.compile(pattern, re.IGNORECASE), words, advice)
    for pattern, words, advice in (
        (
            r"refused",
            "nothing listens there",
            "see that the lead runs, and that address and port under [lead] are where"
            " its Service or its host has it",
        ),
        (
            r"resol|not known|try again|no address associated",
            "its name cannot be resolved there",
            "set address under [lead] to a name that {them} there can resolve, or to a"
            " number",
        ),
        (
            r"timed out",
            "there is no answer",
            "let {them} there connect to that port: a firewall or a NetworkPolicy drops"
            " it, or the address is not one for them",
        ),
        (
            r"no route|unreachable",
            "no way leads there",
            "set address under [lead] to one that is reached from that network",
        ),
    )
)


def arguments(endpoint: str, *python: str) -> list[str]:
    """Return the arguments of SCRIPT for `tcp://ADDRESS:PORT`.

    `python` is how a Python is started there. Raises Refused without an address.
    """
    where = urlsplit(endpoint)
    if not where.hostname or not where.port:
        raise Refused(
            "it is not known where followers reach the lead",
            "set address and port under [lead]",
        )
    return [where.hostname, str(where.port), *python]


def command(endpoint: str, *python: str) -> list[str]:
    """Return the whole command. It takes as long as the system tries to connect.

    Raises Refused without an address.
    """
    return ["/bin/sh", "-c", SCRIPT, "sh", *arguments(endpoint, *python)]


def judge(
    status: int, said: str, endpoint: str, who: str, them: str = "hosts"
) -> Finding:
    """Say what came of the command that ended so. `who` is where it ran."""
    if status == 0:
        return ok(f"{who} reaches {endpoint}")
    if status == NO_PROGRAM:
        return note(
            f"whether {who} reaches {endpoint} cannot be tried: there is neither bash"
            " nor Python",
            "the first burst will tell",
        )
    for pattern, words, advice in _SAYINGS:
        if pattern.search(said):
            what = f"{who} does not reach {endpoint}: {words}"
            return wrong(what, advice.format(them=them))
    why = " ".join(said.split())[:_LONGEST_WORDS]
    why = why or f"it ended with exit status {status}"
    return wrong(f"{who} does not reach {endpoint}: {why}", UNKNOWN)


def judge_silence(
    seconds: float, endpoint: str, who: str, them: str = "hosts"
) -> Finding:
    """Say that the command has run for so long without an answer."""
    _, words, advice = next(s for s in _SAYINGS if s[0].search("timed out"))
    what = f"{who} does not reach {endpoint}: {words} within {seconds:g} s"
    return wrong(what, advice.format(them=them))
