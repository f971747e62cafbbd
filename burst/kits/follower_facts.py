# SPDX-License-Identifier: MIT
"""Checks where followers run: the machine, the user, Flux, and what the lead needs.

A script prints the facts, in an image or on a host where followers run, and pure
functions compare them with the lead. It changes nothing and needs no secret.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import msgspec

from burst.model.finding import Finding, note, ok, wrong
from burst.model.lead import LeadIdentity
from burst.model.version import major_minor

_LONGEST = 200
# The paths of Flux in images of the Flux Operator's views.
_PLACES = "/opt/view/bin/flux /mnt/flux/view/bin/flux"
_MACHINE = """\
echo "burst-machine: $(uname -m 2>/dev/null)"
echo "burst-user: $(id -u 2>/dev/null) $(id -un 2>/dev/null)"
"""
# `flux keygen` without a path makes a key pair and writes nothing; it fails if ZeroMQ
# has no CURVE. With FLUX_URI, flux would connect to that broker.
_FLUX = """\
flux=
for each in {flux} {places}; do
  [ -n "$flux" ] || flux=$(command -v "$each")
done
echo "burst-flux: $flux"
if [ -n "$flux" ]; then
  unset FLUX_URI
  said=$("$flux" version 2>&1)
  echo "burst-version:" $said
  said=$("$flux" keygen 2>&1) || echo "burst-curve:" $said
fi
"""
_LINE = re.compile(
    r"^burst-(machine|user|flux|version|curve):[ \t]*(.*)$", re.MULTILINE
)


class FollowerFacts(msgspec.Struct, frozen=True):
    """The facts that the script has printed; each is empty if it is not known."""

    machine: str = ""
    """The output of `uname -m`."""
    user: str = ""
    """The numeric user, and its name if it has one."""
    flux: str | None = None
    """Path of the program; empty if there is none, None if it was not looked for."""
    version: str = ""
    """The output of `flux version`, as one line."""
    curve: str = ""
    """The error of `flux keygen`; empty if it made a key pair."""


def script(flux: str = "") -> str:
    """Return lines for sh that print the facts.

    `flux` is the name or path of its program; if it is empty, Flux is not looked for.
    """
    if not flux:
        return _MACHINE
    return _MACHINE + _FLUX.format(flux=shlex.quote(flux), places=_PLACES)


def parse(said: str) -> tuple[FollowerFacts | None, str]:
    """Return the facts in this output, None if it has none, and the rest of it."""
    found = {key: words.strip() for key, words in _LINE.findall(said)}
    rest = _LINE.sub("", said).strip()
    return (FollowerFacts(**found) if found else None), rest


def judge(
    facts: FollowerFacts, lead: LeadIdentity, machine: str, where: str = "image"
) -> Iterator[Finding]:
    """Yield findings about the facts. `machine` is the lead's, from `uname -m`.

    `where` is the setting that chooses the followers' Flux, such as `image` or `view`.
    """
    if facts.machine and facts.machine != machine:
        yield note(
            f"followers there run on {facts.machine}, and the lead runs on {machine}:"
            " programs that were built for the lead do not run on them",
            "choose other nodes, or let jobs run programs that were built for both",
        )
    elif facts.machine:
        yield ok(f"followers there run on {facts.machine}, as the lead does")
    yield from _judge_user(facts.user)
    if facts.flux is not None and not lead.follower_module:
        yield from _judge_flux(facts, lead, where)


def _judge_user(user: str) -> Iterator[Finding]:
    number, _, name = user.partition(" ")
    if number and name and name != number:
        yield ok(f"followers there run as user {number} ({name})")
    elif number:
        yield note(
            f"followers there run as user {number}, who has no name in /etc/passwd:"
            " programs that ask for it, such as ssh and many MPIs, fail",
            "add the user to the image, or set user to one that it has",
        )


def _judge_flux(
    facts: FollowerFacts, lead: LeadIdentity, where: str
) -> Iterator[Finding]:
    if not facts.flux:
        yield wrong(
            f"there is no Flux in the {where} of the followers",
            f"set {where} to one with Flux {lead.version}, or flux to its path there",
        )
        return
    match = re.search(r"commands:\s*(\S+)", facts.version)
    try:
        theirs = major_minor(match[1] if match else "")
    except ValueError:
        yield wrong(
            f"`{facts.flux} version` fails in the {where} of the followers:"
            f" {facts.version[:_LONGEST]}",
            "check that Flux works there, as that user",
        )
        return
    assert match is not None, "it has a version"
    told = f"followers there run {facts.flux}, Flux {match[1]}"
    if theirs == major_minor(lead.version):
        yield ok(f"{told}, which matches the lead's {lead.version}")
    else:
        yield wrong(
            f"{told}, which a lead of {lead.version} rejects: MAJOR.MINOR must be the"
            " same",
            f"set {where} to one with Flux {lead.version}",
        )
    if facts.curve:
        yield wrong(
            "followers there cannot use a certificate, as their ZeroMQ has no CURVE:"
            f" {facts.curve[:_LONGEST]}",
            f"set {where} to one whose libzmq was built with libsodium",
        )
