# SPDX-License-Identifier: MIT
"""The command line: `burst ...`, and `flux burst ...` by Flux's own rule."""

from __future__ import annotations

import click

from burst import __version__
from burst.cli import act, ask, doctor, lead, serve
from burst.cli.common import Group
from burst.embedded.commands import group as embedded


@click.group(cls=Group, name="burst", context_settings={"max_content_width": 88})
@click.version_option(__version__, prog_name="burst")
def main() -> None:
    """Lend a Flux instance nodes it does not own, for as long as its jobs need them."""


for command in (
    act.gc,
    act.plan,
    act.release,
    ask.down,
    ask.enable,
    ask.explain,
    ask.reload,
    ask.request,
    ask.status,
    doctor.doctor,
    lead.keygen,
    lead.lead,
    serve.daemon,
    serve.show_config,
    embedded,
):
    main.add_command(command)
