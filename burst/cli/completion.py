# SPDX-License-Identifier: MIT
"""`burst completion`: the script by which a shell completes our commands."""

from __future__ import annotations

import click
from click.shell_completion import (
    BashComplete,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

_SHELLS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}
_PROGRAMS = ("burst", "flux-burst", "run-burst")


@click.command()
@click.argument("shell", type=click.Choice(tuple(_SHELLS)))
def completion(shell: str) -> None:
    """Print a shell script that completes the arguments of burst and run-burst.

    It completes options, commands, and names of jobs, bursts and providers, which it
    gets from the daemon. Load it in the file that the shell reads at its start:

    \b
    bash  eval "$(burst completion bash)"      in ~/.bashrc
    zsh   eval "$(burst completion zsh)"       in ~/.zshrc, after compinit
    fish  burst completion fish | source       in ~/.config/fish/config.fish
    """  # noqa: D301
    for program in _PROGRAMS:
        click.echo(_script(_SHELLS[shell], program))


def _script(shell: type[ShellComplete], program: str) -> str:
    """Return click's script; `source()` would first run bash to ask its version."""
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    complete = shell(click.Command(program), {}, program, variable)
    return shell.source_template % complete.source_vars()
