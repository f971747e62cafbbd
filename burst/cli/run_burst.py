# SPDX-License-Identifier: MIT
"""`run-burst`: one burst by hand, from inside the lead, as in the first experiment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint
from typing import Any

import click
import msgspec

from burst import log
from burst.cli.progress import show_wait
from burst.cli.run_burst_options import GivenFlags, provider_flag_options
from burst.cli.signals import signals_as_ctrl_c
from burst.cli.target import Target, run_command, target_options
from burst.cli.typed_names import complete_provider, complete_slot_name
from burst.cli.wait_for_burst import (
    BurstRow,
    bursts_of,
    joined_text,
    line_of,
    wait_for_burst,
    wait_for_state,
)
from burst.config import ProviderTable, Settings
from burst.decode import from_plain
from burst.errors import BurstError, ConfigError, NoDaemon
from burst.lead import PING_S, Lead
from burst.model.burst import BurstId
from burst.model.printable import printable
from burst.model.ranks import parse_hostlist
from burst.provider_type import usual_type
from burst.runtime.manual_burst import (
    ManualBurst,
    find_slot_hosts,
    manual_burst_settings,
)
from burst.runtime.provider_registry import access_commands
from burst.unread_output import write_while_read


def _run_burst(target: Target, flags: GivenFlags, **wanted: Any) -> None:
    """Make one burst by hand: for the burstable jobs that wait, or ahead of them.

    Waits until its nodes are online and prints which ranks joined. It stays up until
    run-burst --down takes it down. If a daemon serves the lead, the daemon makes it.
    """
    _ManualBurst(target, flags, **wanted).run()


_OPTIONS = (
    click.option(
        "--name",
        default="burst-0",
        show_default=True,
        shell_complete=complete_slot_name,
        help="Name of the rank slot to use.",
    ),
    click.option(
        "--provider",
        default="",
        shell_complete=complete_provider,
        help="Provider that makes the burst, by its name in the settings. Default: the"
        f" type that other flags select, else {usual_type()}.",
    ),
    click.option(
        "-N",
        "--nodes",
        type=int,
        default=0,
        help="Number of nodes; without a daemon, waiting burstable jobs decide instead."
        " Default: all of the slot.",
    ),
    click.option(
        "--lead-host", default="", help="Address at which followers reach the lead."
    ),
    click.option(
        "--lead-port",
        type=click.IntRange(1, 65535),
        help="Port at which followers reach the lead. Default for host and port: [lead]"
        " of the settings, else [bootstrap] hosts of the lead.",
    ),
    click.option(
        "--lead-size",
        default=0,
        help="Expected size of the lead, with or without its burst hosts; another size"
        " is an error.",
    ),
    click.option("--down", is_flag=True, help="Take the burst down."),
)


def make_command(found: Iterable[EntryPoint] | None = None) -> click.Command:
    """Return the command with the flags of these providers, by default all installed.

    `found` are entry points of the group `burst.provider_types`.
    """
    function = provider_flag_options(target_options(_run_burst), found)
    for option in reversed(_OPTIONS):
        function = option(function)
    return click.command("run-burst")(function)


command = make_command()


class _ManualBurst:
    """Makes or ends one burst by hand, by the daemon if one serves the lead."""

    def __init__(self, target: Target, flags: GivenFlags, **wanted: Any) -> None:
        self._target = target
        self._flags = flags
        self._wanted = wanted
        self._provider = wanted["provider"] or flags.selected_type() or usual_type()

    def run(self) -> None:
        settings = self._settings()
        base = settings.providers.get(self._provider)
        base = base or ProviderTable(type=self._provider)
        with self._target.lead() as lead:
            identity = lead.identity()
            slot = find_slot_hosts(identity, self._wanted["name"])
            _check_size(self._wanted["lead_size"], identity.hosts, slot)
            table = self._flags.table(base, len(parse_hostlist(slot)))
            for line in self._flags.notes(table):
                click.echo(line, err=True)
            if self._flags.words():
                providers = {**settings.providers, self._provider: table}
                settings = msgspec.structs.replace(settings, providers=providers)
            try:
                lead.call("ping", {}, PING_S)
            except NoDaemon:
                self._without_daemon(lead, settings, slot)
            else:
                self._by_daemon(lead, slot)

    def _settings(self) -> Settings:
        settings = self._target.settings()
        lead = settings.lead
        address = self._wanted["lead_host"] or lead.address
        port = self._wanted["lead_port"] or lead.port
        lead = msgspec.structs.replace(lead, address=address, port=port)
        return msgspec.structs.replace(settings, lead=lead)

    def _by_daemon(self, lead: Lead, slot: str) -> None:
        def look() -> dict[str, Any]:
            return lead.call("status", {})

        given = self._flags.words()
        if given:
            raise ConfigError(
                f"a daemon serves this lead with its own settings, not with"
                f" {', '.join(given)}",
                f"put that into [providers.{self._provider}] of its file and run burst"
                " reload, or stop the daemon",
            )
        if self._wanted["down"]:
            live = [row for row in bursts_of(look()) if row.live]
            rows = [row for row in live if _within(row, slot)]
            if not rows:
                raise BurstError(f"there is no burst in {slot}", "burst status -a")
            for row in rows:
                lead.call("down", {"burst": row.id})
                wait_for_burst(look, row.id, until="inactive")
            return
        nodes = self._wanted["nodes"] or len(parse_hostlist(slot))
        asked = {"nodes": nodes, "provider": self._provider, "slot": slot}
        made = lead.call("request", asked)
        # An iterator, so that only the wait for the first burst prints the line.
        said = iter([made["text"]])
        for burst in made["bursts"]:
            wait_for_burst(look, burst, said=said)

    def _without_daemon(self, lead: Lead, settings: Settings, slot: str) -> None:
        provider = self._provider
        log.start("text", level="warning")
        reads = "reading the lead and the offers"
        with signals_as_ctrl_c(), show_wait(reads) as update:
            show = _ProgressLines(update)
            settings = manual_burst_settings(settings, provider, slot)
            one = ManualBurst(lead, settings)

            def wait(burst: BurstId, until: str) -> BurstRow:
                rows = (from_plain(row, BurstRow) for row in one.rows(burst))
                ends = ("inactive",)
                return wait_for_state(rows, until, show, ends, "run-burst --down")

            try:
                if self._wanted["down"]:
                    rows = [wait(burst, "inactive") for burst in one.down(slot)]
                else:
                    burst = one.up(provider, slot, self._wanted["nodes"])
                    rows = [wait(burst, "online")]
            except KeyboardInterrupt:
                if not self._wanted["down"]:
                    update("taking down what was made; Ctrl-C again leaves it")
                    for burst in one.undo(slot):
                        wait(burst, "inactive")
                raise
            finally:
                one.close()
        self._report(rows)
        if not self._wanted["down"]:
            self._tell_access(lead, settings, rows)

    def _tell_access(
        self, lead: Lead, settings: Settings, rows: list[BurstRow]
    ) -> None:
        """Print the commands by which a person reaches the bursts' clusters, if any."""
        identity, provider = lead.identity(), self._provider
        for row in rows:
            burst = BurstId(row.id)
            commands = access_commands(settings, identity, provider, burst)
            for line in commands:
                click.echo(f"to reach it: {line}")

    def _report(self, rows: list[BurstRow]) -> None:
        for row in rows:
            if self._wanted["down"]:
                click.echo(f"{row.id} is gone: {row.result}")
                continue
            click.echo(f"{joined_text(row)}: {row.id}")
            again = ["run-burst --down --name", self._wanted["name"]]
            if self._wanted["provider"]:
                again += ["--provider", self._provider]
            click.echo(f"it stays until: {' '.join([*again, *self._flags.words()])}")


class _ProgressLines:
    """Shows the state of a burst, and prints a line for each change.

    The terminal may go, or the reader of a pipe; neither ends what runs.
    """

    def __init__(self, update: Callable[[str], None]) -> None:
        self._update = update
        self._last = ""

    def __call__(self, row: BurstRow) -> None:
        line = printable(line_of(row))
        if line == self._last:
            return
        self._last = line
        self._update(line)
        write_while_read(sys.stderr, f"{line}\n")


def _check_size(size: int, hosts: Sequence[str], slot: str) -> None:
    """Raise ConfigError unless the lead has that size, with its burst hosts or without.

    In the first experiment, the flag was the size without them.
    """
    first = hosts.index(parse_hostlist(slot)[0])
    if size and size not in (len(hosts), first):
        raise ConfigError(
            f"--lead-size {size}: the lead has {len(hosts)} ranks",
            f"give the lead's largest size, {first} without the hosts of bursts, or"
            " leave the option out",
        )


def _within(row: BurstRow, slot: str) -> bool:
    return set(parse_hostlist(row.hosts)) <= set(parse_hostlist(slot))


def main() -> None:
    """Run as a program."""
    run_command(command)
