# SPDX-License-Identifier: MIT
"""Lists of commands in `--help`: uncut texts, in sections if there are many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from burst.errors import BurstError

# More characters than any first sentence has; click cuts off a longer text.
_WHOLE = 1_000


class CommandGroup(click.Group):
    """A group whose `--help` shows the first sentence of each command, whole."""

    rest = "Commands"
    """The title of the section of those commands that `parts` does not name."""

    def parts(self) -> Mapping[str, Sequence[str]]:
        """Return the names of the commands in each section, by its title."""
        return {}

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the commands in their sections; click calls it."""
        parts = self.parts()
        named = {name for names in parts.values() for name in names}
        others = [name for name in self.list_commands(ctx) if name not in named]
        for title, names in {**parts, self.rest: others}.items():
            told = ((name, self._short_help(ctx, name)) for name in names)
            if rows := [row for row in told if row[1]]:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def _short_help(self, ctx: click.Context, name: str) -> str:
        """Return the first sentence of a command; empty for a hidden one.

        Of one whose package cannot be imported it says so: the others can be used.
        """
        try:
            command = self.get_command(ctx, name)
        except BurstError as error:
            return error.what
        if command is None or command.hidden:
            return ""
        return command.get_short_help_str(_WHOLE)
