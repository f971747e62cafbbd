# SPDX-License-Identifier: MIT
"""The command line: `burst ...`, and `flux burst ...` by Flux's own rule."""

from __future__ import annotations

import click

from burst import __version__
from burst.cli import (
    act,
    ask,
    batch,
    demo,
    doctor,
    explain,
    lead,
    request,
    serve,
    setup,
)
from burst.cli.common import run_command
from burst.embedded.commands import group as embedded


@click.group(name="burst", context_settings={"max_content_width": 88})
@click.version_option(__version__, prog_name="burst")
def group() -> None:
    """Lend a Flux instance nodes it does not own, for as long as its jobs need them."""


for command in (
    act.gc,
    act.plan,
    act.release,
    ask.down,
    ask.enable,
    ask.reload,
    ask.status,
    demo.demo,
    doctor.doctor,
    explain.explain,
    lead.keygen,
    lead.lead,
    request.output,
    request.request,
    serve.daemon,
    serve.show_config,
    setup.setup,
    embedded,
):
    group.add_command(command)

for command in (batch.batch, batch.batch_node, batch.batch_script, batch.sweep):
    lead.lead.add_command(command)


def main() -> None:
    """Run as a program."""
    run_command(group)
