# SPDX-License-Identifier: MIT
"""`burst reload`: has the daemon read its settings again."""

from __future__ import annotations

from collections.abc import Sequence

import click

from burst.cli.doctor import read_facts
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.doctor import DoctorRequest, diagnose
from burst.model.finding import Finding, Level


@click.command()
@target_options
def reload(target: Target) -> None:
    """Have the daemon read its settings again (as SIGHUP does).

    Then checks what `burst doctor` checks, and says on standard error what is wrong.
    """
    with target.lead() as lead, show_wait("waiting for the daemon"):
        found = lead.call("reload", {}, timeout=120.0)
    click.echo(f"reloaded; changed: {', '.join(found['changed']) or 'nothing'}")
    for name in found["late"]:
        click.echo(
            f"provider {name} has not answered its last call yet; it is called again"
            " after that"
        )
    with show_wait("checking"):
        asked = DoctorRequest(settings=read_facts(target), uri=target.uri or "")
        findings = diagnose(asked)
    tell_wrong(findings)


def tell_wrong(findings: Sequence[Finding]) -> None:
    """Say on standard error what is wrong.

    Root may reload the daemon of another user, and checks nothing then.
    """
    for finding in findings:
        if finding.level is not Level.WRONG or finding.about == "user":
            continue
        told = f"{finding.about}: {finding.what}; {finding.advice}"
        click.echo(f"wrong: {told}", err=True)
