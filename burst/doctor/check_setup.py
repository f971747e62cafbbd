# SPDX-License-Identifier: MIT
"""Checks settings, Flux, and how the lead was started."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from burst.config.file import LOOKED_FOR
from burst.doctor.facts import FluxFacts, LeadFacts, ReadFailure, SettingsFacts
from burst.errors import BurstError
from burst.flux.bindings import OLDEST
from burst.flux.identity import BootInfo
from burst.kits.broker import expand_hosts
from burst.model.finding import Finding, note, ok, wrong
from burst.model.lead import LeadIdentity
from burst.model.ranks import format_hostlist, format_idset
from burst.model.version import major_minor

_ANEW = "ranks are fixed when a lead starts: `burst lead init DIR` writes what it needs"
_UPDATE = f"install flux-core {OLDEST[0]}.{OLDEST[1]} or later"


def check_settings(facts: SettingsFacts) -> list[Finding]:
    """Check the settings file."""
    if facts.trouble:
        return [wrong(facts.trouble.what, facts.trouble.advice or "correct it there")]
    if not facts.path:
        return [
            note(
                f"there is no settings file ({LOOKED_FOR}); defaults are used",
                "name one with -c; `burst lead init DIR` writes one",
            )
        ]
    names = ", ".join(facts.settings.providers) or "none"
    return [ok(f"{facts.path} is read; providers: {names}")]


def check_flux_program(facts: FluxFacts, needed: bool) -> list[Finding]:
    """Check Flux on this host. Not every lead needs it."""
    if not needed:
        return [ok(f"{facts.program or 'none on PATH'}; this lead needs none")]
    found = [_program(facts)]
    if isinstance(facts.bindings, ReadFailure):
        found.append(wrong(facts.bindings.what, facts.bindings.advice))
        return found
    found.append(ok(f"Python bindings {facts.library} from {facts.bindings}"))
    if isinstance(facts.version, str) and _differ(facts.version, facts.library):
        found.append(
            wrong(
                f"{facts.program} is Flux {facts.version}, but the Python bindings are"
                f" of {facts.library}",
                "put the directory of the lead's flux first on PATH",
            )
        )
    return found


def _program(facts: FluxFacts) -> Finding:
    if not facts.program:
        return wrong(
            "there is no flux on PATH", f"{_UPDATE}, or put its directory on PATH"
        )
    if isinstance(facts.version, ReadFailure):
        return wrong(
            facts.version.what,
            f"check that `{facts.program} version` works as this user",
        )
    try:
        old = major_minor(facts.version) < OLDEST
    except ValueError as error:
        return wrong(f"{facts.program}: {error}", _UPDATE)
    if old:
        return wrong(
            f"{facts.program} is Flux {facts.version}; too old for bursts", _UPDATE
        )
    return ok(f"{facts.program} is Flux {facts.version}")


def _differ(version: str, other: str) -> bool:
    """Tell whether two versions do not go together; False if one is no version."""
    try:
        return major_minor(version) != major_minor(other)
    except ValueError:
        return False


def check_user(
    boot: BootInfo | ReadFailure | None, name: Callable[[int], str]
) -> list[Finding]:
    """Check that this process runs as the daemon's user; no findings if it does.

    `name` returns a user's name. Another user, even root, has other rights, files and
    processes, so that findings may be wrong for the daemon.
    """
    if not isinstance(boot, BootInfo) or boot.userid == boot.owner:
        return []
    owner = name(boot.owner)
    return [
        wrong(
            f"the instance and its daemon run as {owner}, and this command runs as"
            f" {name(boot.userid)}, who has other rights and files: nothing is checked",
            f"as root: runuser -u {owner} -- burst doctor, with the same options",
        )
    ]


def check_lead(facts: LeadFacts, flux: FluxFacts) -> list[Finding]:
    """Check whether the lead answers, and whether this is its rank 0."""
    where = facts.uri or "Flux's default, as FLUX_URI is not set"
    source = f" (by {facts.source})" if facts.source else ""
    lead = facts.identity
    if isinstance(lead, ReadFailure):
        bindings = flux.bindings
        if isinstance(bindings, ReadFailure) and lead.what == bindings.what:
            text = "the lead cannot be reached without Flux's Python bindings"
            return [wrong(f"{text}: {where}{source}", "see the finding about flux")]
        text = f"{lead.what}{source}"
        advice = "run this on the lead, as the owner of the instance"
        return [wrong(text, lead.advice or advice)]
    owner = facts.owner or lead.owner
    found = [ok(f"{lead.kind} {lead.version} at {lead.uri}{source}, owner tag {owner}")]
    if isinstance(facts.boot, BootInfo) and facts.boot.rank:
        found.append(
            wrong(
                f"this is rank {facts.boot.rank} of the instance; the daemon has to"
                " run on rank 0",
                "run it on the host of rank 0",
            )
        )
    return found


def check_bootstrap(
    lead: LeadIdentity, boot: BootInfo | ReadFailure | None
) -> list[Finding]:
    """Check whether followers can join, and whether all sources order ranks alike."""
    if isinstance(boot, ReadFailure):
        return [wrong(boot.what, boot.advice)]
    if boot and boot.method != "config":
        return [
            wrong(
                f"the lead was started by {boot.method}, not from [bootstrap] hosts,"
                " so no follower can join",
                _ANEW,
            )
        ]
    found = []
    try:
        declared = [entry.host for entry in expand_hosts(lead.bootstrap)]
    except BurstError as error:
        return [wrong(error.what, error.advice or _ANEW)]
    for names, what in (
        (declared, "[bootstrap] hosts name"),
        (boot.nodelist if boot else lead.hosts, "R names"),
    ):
        if tuple(names) != lead.hosts:
            found.append(_out_of_order(lead.hosts, names, what))
    bare = [rank for rank, shape in enumerate(lead.shapes) if not shape.cores]
    if bare:
        found.append(
            wrong(
                f"R has no cores for ranks {format_idset(bare)}: no job can run there",
                "declare them in R, and restart the lead",
            )
        )
    method = "[bootstrap] hosts and R name the same"
    return found or [ok(f"{method} {len(lead.hosts)} hosts in the lead's order")]


def _out_of_order(hosts: Sequence[str], names: Sequence[str], what: str) -> Finding:
    rank = next(
        (
            i
            for i, pair in enumerate(zip(hosts, names, strict=False))
            if len({*pair}) > 1
        ),
        min(len(hosts), len(names)),
    )
    ours = format_hostlist(hosts[rank : rank + 1]) or "no host"
    theirs = format_hostlist(names[rank : rank + 1]) or "no host"
    return wrong(
        f"the lead runs with {ours} as rank {rank}, but {what} {theirs} there:"
        " the lead would reject followers",
        "its files were changed after it was started: restore them, or restart it",
    )
