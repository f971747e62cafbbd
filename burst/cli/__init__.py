# SPDX-License-Identifier: MIT
"""The command line: `burst ...`, and `flux burst ...`, which runs `flux-burst`."""

from __future__ import annotations

import click

from burst import __version__
from burst.cli import (
    completion,
    config,
    cost,
    daemon,
    demo,
    doctor,
    down,
    enable,
    ensemble,
    ensemble_agent,
    ensemble_replay,
    ensemble_run,
    explain,
    gc,
    keygen,
    kubeconfig,
    lead,
    lead_batch,
    lead_init,
    lead_slots,
    lead_sweep,
    output,
    plan,
    policy,
    release,
    reload,
    replay,
    report,
    request,
    resize,
    setup,
    status,
    watch,
)
from burst.cli.target import run_command
from burst.embedded.commands import group as embedded


@click.group(name="burst", context_settings={"max_content_width": 88})
@click.version_option(__version__, prog_name="burst")
def group() -> None:
    """Lend a Flux instance nodes it does not own, for as long as its jobs need them."""


for command in (
    completion.completion,
    config.show_config,
    cost.cost,
    daemon.daemon,
    demo.demo,
    doctor.doctor,
    down.down,
    enable.enable,
    ensemble.ensemble,
    explain.explain,
    gc.gc,
    keygen.keygen,
    kubeconfig.kubeconfig,
    lead.lead,
    output.output,
    plan.plan,
    policy.policy,
    release.release,
    reload.reload,
    replay.replay_trace,
    report.report,
    request.request,
    resize.resize,
    setup.setup,
    status.status,
    watch.watch,
    embedded,
):
    group.add_command(command)

for command in (
    lead_init.init,
    lead_slots.add_slot,
    lead_slots.check,
    lead_batch.batch,
    lead_batch.batch_node,
    lead_batch.batch_script,
    lead_sweep.sweep,
):
    lead.lead.add_command(command)

ensemble.ensemble.add_command(ensemble_replay.replay)
ensemble.ensemble.add_command(ensemble_agent.agent)
for command in (
    ensemble_run.up,
    ensemble_run.status,
    ensemble_run.submit,
    ensemble_run.resize,
    ensemble_run.down,
):
    ensemble.ensemble.add_command(command)


def main() -> None:
    """Run as a program."""
    run_command(group)
