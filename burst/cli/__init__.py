# SPDX-License-Identifier: MIT
"""The command line: `burst ...`, and `flux burst ...`, which runs `flux-burst`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import cast

import click

from burst import __version__
from burst.cli.help_texts import CommandGroup
from burst.cli.target import run_command
from burst.errors import ConfigError
from burst.extensions import installed, load

# For each command its module and its name there, then those of the commands below it.
_COMMANDS: Mapping[str, Sequence[str]] = {
    "completion": ["burst.cli.completion:completion"],
    "config": ["burst.cli.config:show_config"],
    "cost": ["burst.cli.cost:cost"],
    "daemon": ["burst.cli.daemon:daemon"],
    "demo": ["burst.cli.demo:demo"],
    "doctor": ["burst.cli.doctor:doctor"],
    "down": ["burst.cli.down:down"],
    "enable": ["burst.cli.enable:enable"],
    "explain": ["burst.cli.explain:explain"],
    "gc": ["burst.cli.gc:gc"],
    "keygen": ["burst.cli.keygen:keygen"],
    "kubeconfig": ["burst.cli.kubeconfig:kubeconfig"],
    "lead": [
        "burst.cli.lead:lead",
        "burst.cli.lead_init:init",
        "burst.cli.lead_adopt:adopt",
        "burst.cli.lead_unadopt:unadopt",
        "burst.cli.lead_slots:add_slot",
        "burst.cli.lead_slots:check",
        "burst.cli.lead_batch:batch",
        "burst.cli.lead_batch:batch_node",
        "burst.cli.lead_batch:batch_script",
        "burst.cli.lead_sweep:sweep",
    ],
    "output": ["burst.cli.output:output"],
    "plan": ["burst.cli.plan:plan"],
    "policy": ["burst.cli.policy:policy"],
    "provider": ["burst.cli.provider:provider", "burst.cli.provider:check"],
    "release": ["burst.cli.release:release"],
    "reload": ["burst.cli.reload:reload"],
    "request": ["burst.cli.request:request"],
    "resize": ["burst.cli.resize:resize"],
    "setup": ["burst.cli.setup:setup"],
    "status": ["burst.cli.status:status"],
}

# Commands about jobs, and commands about bursts. Commands that packages add are listed
# with those about bursts.
_JOBS = ("explain", "plan", "request", "output", "release", "cost")
_BURSTS = ("status", "resize", "down", "kubeconfig")


class _Commands(CommandGroup):
    """Imports the module of a command when the command is used.

    To import all takes half as long again as to import one, and scripts call `burst
    status` often.
    """

    rest = "Administration"

    def parts(self) -> Mapping[str, Sequence[str]]:
        """Return the commands for jobs and for bursts."""
        return {"Jobs": _JOBS, "Bursts": (*_BURSTS, *sorted(_added()))}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        ours = {*super().list_commands(ctx), *_COMMANDS}
        return sorted({*ours, *_added()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name; None if there is none."""
        if cmd_name not in self.commands and cmd_name in _COMMANDS:
            command, *below = map(_load, _COMMANDS[cmd_name])
            for each in below:
                assert isinstance(command, click.Group)
                command.add_command(each)
            self.add_command(command, cmd_name)
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in _added():
            names = _added(below=cmd_name)
            found = _load_added(cmd_name, click.Group if names else click.Command)
            for name in names:
                added = _load_added(f"{cmd_name}.{name}", click.Command)
                cast(click.Group, found).add_command(added, name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return a command's name, the command and its arguments, as click does.

        The error for an unknown name suggests a similar one.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib  # noqa: PLC0415 - no other command needs it

            close = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            if not close:
                raise
            told = f"{error.message} Did you mean {close[0]}?"
            raise click.UsageError(told, ctx) from None


def _added(below: str = "") -> list[str]:
    """Return the names of commands that packages add, or of those below one of them."""
    named = [name.rpartition(".") for name in installed("burst.commands")]
    return [name for above, _, name in named if above == below]


def _load_added(name: str, kind: type[click.Command]) -> click.Command:
    """Return a command that a package adds. Raises ConfigError."""
    found = load("burst.commands", name)
    if not isinstance(found, kind):
        raise ConfigError(
            f"burst.commands: {name} is {found!r:.60}, not a click {kind.__name__}",
            "that is a mistake in its package; install another version of it",
        )
    return found


def _load(place: str) -> click.Command:
    module, _, name = place.partition(":")
    command = getattr(import_module(module), name)
    assert isinstance(command, click.Command)
    return command


@click.group(cls=_Commands, name="burst", context_settings={"max_content_width": 88})
@click.version_option(__version__, prog_name="burst")
def group() -> None:
    """Lend a Flux instance nodes it does not own, for as long as its jobs need them."""


def main() -> None:
    """Run as a program."""
    run_command(group)
