# SPDX-License-Identifier: MIT
"""`burst lead init`: writes a lead's files."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from burst.cli.gateway_option import GatewayCommand, gateway_option
from burst.cli.lead_multi_user import (
    multi_user_options,
    system_choice,
    tell_root,
    warn_of_program,
)
from burst.cli.progress import show_wait
from burst.config import IntakeSettings, Mode
from burst.flux_setup.setup_files import IntakeChoice, check_flux_version
from burst.lead_setup.init_lead import InitializedLead, init_lead
from burst.lead_setup.lead_plan import (
    LeadPlan,
    parse_slot,
    slot_provider,
    with_gateways,
)
from burst.lead_setup.own_host import own_shape, short_name
from burst.lead_setup.system_lead import init_system_lead, root_commands, run_as_root
from burst.model.ranks import parse_hostlist
from burst.model.shape import Shape
from burst.provider_type import provider_type, usual_type

# One large slot: several bursts can have parts of it, and one burst can have all of it.
_DEFAULT_SLOTS = ("burst-0-[0-7]",)
# Two slots: one whose hosts join through one of them serves one burst at a time.
_DEFAULT_GATEWAY_SLOTS = ("burst-0-[0-3]", "burst-1-[0-3]")
_LOOPBACK = "127.0.0.1"


@click.command(cls=GatewayCommand)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--hosts", help="Own hosts, rank 0 first. Default: this host's name.")
@click.option(
    "--cores", type=int, help="Cores of each own host. Default: this machine's."
)
@click.option(
    "--gpus", type=int, help="GPUs of each own host. Default: this machine's."
)
@click.option(
    "--slot",
    "slots",
    multiple=True,
    metavar="HOSTLIST[:CORES[:GPUS]]",
    help="A rank slot; may be repeated. Without CORES, its nodes have the cores and"
    f" GPUs of the own hosts. Default: {_DEFAULT_SLOTS[0]}; with --gateways"
    f" {' and '.join(_DEFAULT_GATEWAY_SLOTS)}.",
)
@click.option(
    "--address",
    help="Address at which followers reach rank 0. Default: 127.0.0.1 if followers run"
    " on the only own host, else the name of the first own host.",
)
@click.option(
    "--port",
    type=int,
    default=8050,
    show_default=True,
    help="Port at which followers reach rank 0.",
)
@gateway_option
@click.option(
    "--provider",
    default=usual_type(),
    show_default=True,
    metavar="TYPE",
    help="Type of the provider to write into burst.toml: none, or one that is"
    " installed. Values that you have to fill in are comments there, and are printed."
    " The slots get the provider's name as a property, and are for its bursts only;"
    f" with none or {usual_type()}, they are for any provider.",
)
@click.option(
    "--mode",
    type=click.Choice(["hold", "queue", "scheduler"]),
    help="Intake mode, see docs/intake.md. Installs the files that Flux loads for it,"
    " and has the daemon start with the lead. Default: hold, with nothing installed;"
    " with --multi-user: scheduler.",
)
@multi_user_options
@click.option(
    "--force",
    is_flag=True,
    help="Write broker.toml and R again. The certificate is kept, since followers have"
    " copies of it, and so is burst.toml, since it may have been edited: its"
    " differences from these options are printed, for you to change. Without"
    " --force, nothing is written if one of these files exists.",
)
def init(directory: Path, mode: Mode | None, **options: Any) -> None:
    """Write the files of a lead that can burst to DIR, and say how to start it.

    The files are broker.toml with every rank that may ever join, R, a certificate, and
    burst.toml for the daemon. Ranks are fixed when a lead starts: to change them, write
    the files again and restart the lead.
    """
    provider, force = options["provider"], options["force"]
    plan = _plan(provider, options)
    if options["multi_user"]:
        _init_system(directory, plan, mode or "scheduler", options)
        return
    choice = _choice(mode) if mode else None
    with show_wait("writing the files"):
        ready = init_lead(directory, plan, provider, replace=force, choice=choice)
    for line in _how_to_go_on(ready):
        click.echo(line)


def _choice(mode: Mode) -> IntakeChoice:
    intake = IntakeSettings(mode=mode)
    check_flux_version(intake)
    return IntakeChoice(intake=intake, local_queue="batch")


def _init_system(
    directory: Path,
    plan: LeadPlan,
    mode: Mode,
    options: Mapping[str, Any],
) -> None:
    """Write the files of a system instance, and tell what root has to do."""
    provider, installs = options["provider"], options["install"]
    choice = system_choice(_choice(mode), plan, options)
    for line in warn_of_program(choice.places.user):
        click.echo(line, err=True)
    with show_wait("writing the files"):
        ready = init_system_lead(
            directory, plan, provider, choice, replace=options["force"]
        )
        if installs:
            run_as_root(root_commands(ready.files.config.parent, choice))
    for line in (*_written(ready), *tell_root(ready, choice, installed=installs)):
        click.echo(line)


def _plan(provider: str, options: Mapping[str, Any]) -> LeadPlan:
    here = own_shape()
    cores, gpus = options["cores"], options["gpus"]
    shape = Shape(
        here.cores if cores is None else cores, here.gpus if gpus is None else gpus
    )
    hosts = short_name() if options["hosts"] is None else options["hosts"]
    address = options["address"]
    if address is None:
        first, *others = _expand(hosts)
        address = first if others or not provider_type(provider).own_host else _LOOPBACK
    gateways = options["gateways"]
    default = _DEFAULT_SLOTS if gateways is None else _DEFAULT_GATEWAY_SLOTS
    name, texts = slot_provider(provider), options["slots"] or default
    slots = [parse_slot(text, shape, name) for text in texts]
    return LeadPlan(
        hosts=hosts,
        shape=shape,
        slots=with_gateways(slots, gateways or (), options["port"]),
        address=address,
        port=options["port"],
        gateways=gateways is not None,
    )


def _expand(hosts: str) -> tuple[str, ...]:
    """Return the hosts; the text itself if it is no hostlist, an error found later."""
    try:
        return parse_hostlist(hosts) or (hosts,)
    except ValueError:
        return (hosts,)


def _how_to_go_on(ready: InitializedLead) -> Iterator[str]:
    yield from _written(ready)
    files, own = ready.files, parse_hostlist(ready.own)
    if ready.scripts:
        where = " on each own host" if own[1:] else ""
        yield f"\nStart the lead{where}; the daemon starts with it:\n"
        yield f"    {shlex.quote(str(ready.scripts.start))}"
        yield "\nIn each shell that submits or lists burst jobs:\n"
        yield f"    . {shlex.quote(str(ready.scripts.env))}"
    else:
        yield "\nStart the lead, and let clients find it:\n"
        yield from _start(own, files.commands)
        yield f"    export FLUX_URI={shlex.quote(files.uri)}"
    yield "\nThen:\n"
    for verb in ("doctor",) if ready.scripts else ("doctor", "daemon"):
        yield f"    {shlex.join(['burst', verb, '-c', str(ready.settings)])}"


def _written(ready: InitializedLead) -> Iterator[str]:
    """Yield a line for each file."""
    files = ready.files
    notes = {
        files.config: f"ranks in order: {ready.hosts}",
        files.resources: "the resources that the scheduler uses",
        files.certificate: f"fingerprint {ready.fingerprint}; whoever can read it can"
        " join",
        ready.settings: "for the daemon",
    }
    for path, what in notes.items():
        yield f"{'kept ' if path in ready.kept else 'wrote'} {path}  ({what})"
    yield from (f"    {line}" for line in ready.unlike)
    if ready.fill_in:
        yield ready.fill_in
    for path in ready.loaded:
        yield f"wrote {path}"
    if ready.scripts:
        yield f"wrote {ready.scripts.start}  (starts the lead's broker on its host)"
        yield f"wrote {ready.scripts.env}  (for shells that use the lead)"


def _start(own: Sequence[str], commands: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield what to type on each own host."""
    for host, command in zip(own, commands, strict=True):
        where = f"  # on {host}" if own[1:] else ""
        yield f"    {shlex.join(command)}{where}"
