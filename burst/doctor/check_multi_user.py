# SPDX-License-Identifier: MIT
"""Checks what other users' jobs need on the lead's host.

Sources: flux-config-access(5), flux-config-exec(5), flux-config-security(5),
flux-config-security-imp(5).
"""

from __future__ import annotations

import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from burst.doctor.facts import FileFacts, MultiUserFacts, ReadFailure
from burst.lead_setup.security_files import missing_in_imp, wrong_in_sign
from burst.model.finding import Finding, note, ok, wrong

_SETUP = "`burst lead init DIR --multi-user` writes one; see docs/multi-user.md"
_MUNGE = (
    "start munged, such as by `systemctl enable --now munge`; all hosts need the same"
    " /etc/munge/munge.key"
)


def check_multi_user(facts: MultiUserFacts | ReadFailure) -> list[Finding]:
    """Check a lead that lets other users submit."""
    if isinstance(facts, ReadFailure):
        return [wrong(facts.what, facts.advice or "see the finding about the lead")]
    return [
        _check_imp(facts.imp),
        *_check_exec(facts),
        *_check_sign(facts.sign_table),
        *_check_security_files(facts.security_files),
        _check_munge(facts.munge, facts.sign_table),
        _check_certificate(facts),
        _check_rundir(facts),
        *_check_python(facts.python),
        *_check_trusted(facts),
        *_check_daemon(facts),
    ]


def _check_imp(imp: FileFacts | ReadFailure | None) -> Finding:
    if imp is None:
        return wrong(
            "other users may submit, and the lead's configuration names no IMP, so"
            " their jobs fail",
            'set imp under [exec], such as imp = "/usr/libexec/flux/flux-imp"',
        )
    if isinstance(imp, ReadFailure):
        return wrong(imp.what, imp.advice or "install flux-security, or correct imp")
    if imp.nosuid:
        return wrong(
            f"{imp.path} is on a file system that is mounted nosuid, so it cannot"
            " become another user",
            "mount it without nosuid, or install flux-security elsewhere",
        )
    if imp.uid or not imp.mode & stat.S_ISUID or not imp.mode & stat.S_IXOTH:
        return wrong(
            f"{imp.path} is owned by uid {imp.uid} with mode {imp.mode:04o}, so it"
            " cannot become another user",
            f"as root: chown root:root {imp.path} && chmod 4755 {imp.path}",
        )
    if imp.mode & (stat.S_IWGRP | stat.S_IWOTH):
        return wrong(
            f"{imp.path} has mode {imp.mode:04o}: others can replace what runs as root",
            f"as root: chmod 4755 {imp.path}, and check that nobody changed it",
        )
    return ok(f"{imp.path} is owned by root and setuid")


def _check_exec(facts: MultiUserFacts) -> Iterator[Finding]:
    table, shell = facts.exec_table, facts.shell
    for each in (table, shell):
        if isinstance(each, ReadFailure):
            yield wrong(each.what, each.advice or "make it readable")
    if isinstance(table, ReadFailure) or isinstance(shell, ReadFailure):
        return
    if table is None:
        yield note(
            "the IMP's configuration is closed to this user, so it was not examined",
            f'as root, see that [exec] there has "{facts.user}" in allowed-users and'
            f' "{shell}" in allowed-shells',
        )
        return
    if not table:
        yield wrong("the IMP has no [exec] table, so it starts nothing", _SETUP)
        return
    lacking = missing_in_imp(table, facts.user, shell)
    for line in lacking:
        yield wrong(
            f"the IMP does not let {facts.user} start {shell} for other users",
            f"as root, in the IMP's configuration: {line}",
        )
    if table.get("allow-unprivileged-exec"):
        yield wrong(
            "allow-unprivileged-exec is set for the IMP: where it is not setuid, users'"
            f" jobs run as {facts.user}",
            "as root, remove it from the IMP's configuration",
        )
    elif not lacking:
        yield ok(f"the IMP lets {facts.user} start {shell} for other users")


def _check_sign(sign: Mapping[str, Any] | ReadFailure) -> Iterator[Finding]:
    if isinstance(sign, ReadFailure):
        yield wrong(sign.what, sign.advice or "make it readable")
        return
    if not sign:
        yield wrong("flux-security has no [sign] table: no job can be signed", _SETUP)
        return
    lines = wrong_in_sign(sign)
    for line in lines:
        what = "[sign] of flux-security is not for many users"
        yield wrong(what, f"as root: {line}")
    if not lines:
        types = ", ".join(sign["allowed-types"])
        yield ok(f"jobs are signed by {sign['default-type']}; accepted: {types}")


def _check_security_files(files: Sequence[FileFacts]) -> Iterator[Finding]:
    for file in files:
        if file.uid or file.mode & (stat.S_IWGRP | stat.S_IWOTH):
            yield wrong(
                f"{file.path} is owned by uid {file.uid} with mode {file.mode:04o}, and"
                " flux-security reads only what nobody but root can change",
                f"as root: chown root:root {file.path} && chmod go-w {file.path}",
            )


def _check_munge(
    munge: str | ReadFailure, sign: Mapping[str, Any] | ReadFailure
) -> Finding:
    if isinstance(sign, Mapping) and "munge" not in sign.get("allowed-types", "munge"):
        return ok("munge is not used to sign jobs")
    if isinstance(munge, ReadFailure):
        return wrong(f"munge does not answer: {munge.what}", munge.advice or _MUNGE)
    return ok(f"munge answers; this user is {munge}")


def _check_certificate(facts: MultiUserFacts) -> Finding:
    file = facts.certificate
    if isinstance(file, ReadFailure):
        return wrong(file.what, file.advice or "set curve_cert under [bootstrap]")
    if file.uid != facts.owner or file.mode & 0o077:
        return wrong(
            f"{file.path} is owned by uid {file.uid} with mode {file.mode:04o}: whoever"
            f" can read it can join as a node, and {facts.user} must be able to",
            f"as root: chown {facts.user} {file.path} && chmod 600 {file.path}; if"
            " others could read it, make a new one",
        )
    return ok(f"{file.path} is for {facts.user} alone")


def _check_rundir(facts: MultiUserFacts) -> Finding:
    if facts.rundir_closed:
        return wrong(
            f"other users cannot enter {facts.rundir_closed}, so they do not reach the"
            f" lead's socket in {facts.rundir}",
            f"chmod o+x {facts.rundir_closed}; in the lead's unit RuntimeDirectoryMode"
            " is 0755",
        )
    return ok(f"other users reach the lead's socket in {facts.rundir}")


def _check_python(python: Mapping[str, str] | ReadFailure) -> Iterator[Finding]:
    if isinstance(python, ReadFailure):
        yield wrong(python.what, python.advice or "see that `flux python` works")
        return
    for path, closed in python.items():
        if closed:
            yield wrong(
                f"other users cannot read {path}, which flux submit and others need:"
                f" {closed} is closed to them",
                f"chmod o+rX {closed}, or configure Flux with a Python that all users"
                " can read",
            )
    if not any(python.values()):
        yield ok(f"all users can read Flux's Python: {', '.join(python)}")


def _check_trusted(facts: MultiUserFacts) -> Iterator[Finding]:
    files = facts.trusted
    if isinstance(files, ReadFailure):
        yield wrong(files.what, files.advice or "make it readable")
        return
    for part in dict.fromkeys(filter(None, files.values())):
        whose = [path for path, found in files.items() if found == part]
        first, more = whose[0], f" and {len(whose) - 1} more" if whose[1:] else ""
        advice = "install what is there where only root can write"
        if part in (first, str(Path(first).parent)):
            quoted = shlex.quote(part)
            advice = f"as root: chown root {quoted} && chmod go-w {quoted}; or {advice}"
        yield wrong(
            f"{part} can be changed by users other than root and {facts.user}, so they"
            f" decide what runs as {facts.user}: {first}{more}",
            advice,
        )
    if not any(files.values()):
        yield ok(
            f"only root and {facts.user} can change Flux's configuration, R, burst's"
            " settings and plug-ins, burst and its Python"
        )


def _check_daemon(facts: MultiUserFacts) -> Iterator[Finding]:
    if facts.daemon is None:
        return
    if facts.daemon != facts.owner:
        yield note(
            f"the daemon runs as uid {facts.daemon}, with more rights than it uses",
            f"run it as {facts.user}: User={facts.user} in its unit",
        )
    else:
        yield ok(f"the daemon runs as {facts.user}, the owner of the instance")
