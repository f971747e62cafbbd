# SPDX-License-Identifier: MIT
"""Waits for a burst, and shows its progress."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import click
import msgspec

from burst.cli.listing import fsd
from burst.cli.progress import show_wait
from burst.decode import from_plain
from burst.errors import BurstError, CallsTooOften
from burst.model.decision import count_nodes, name_ranks

# Seconds between two calls to the daemon.
_EVERY = 0.2
# Further seconds after a user has called too often, by waiting for many bursts.
_LATER = 2.0

# States from which a burst does not become online.
_LEAVING = ("drain", "reap", "inactive")

Row = dict[str, Any]
Look = Callable[[], Row]


class BurstRow(msgspec.Struct, frozen=True):
    """What commands read of a burst in the answer to `status`."""

    id: str
    state: str
    nodes: int = 0
    online: int | None = None
    """The nodes that are up; None if that is not known."""
    hosts: str = ""
    ranks: str = ""
    jobs: tuple[str, ...] = ()
    provider: str = ""
    tag: str = ""
    isolated: str | None = None
    """The kind of an isolated burst; None for another."""
    access: str = ""
    resize: Row | None = None
    result: str | None = None
    note: str = ""

    @property
    def live(self) -> bool:
        """Whether anything of it may be left."""
        return self.state != "inactive"

    @property
    def why(self) -> str:
        """Why it is in its state."""
        return str(self.note or self.result)


def bursts_of(status: Mapping[str, Any]) -> list[BurstRow]:
    """Return the bursts in the answer to `status`, in the order they were made."""
    return from_plain(status.get("bursts", []), list[BurstRow])


def wait_for_burst(
    look: Look,
    burst_id: str,
    until: str = "online",
    said: Iterable[str] = (),
    *,
    runs: bool = False,
) -> BurstRow:
    """Wait until a burst is online, or `inactive`, and return its row.

    `look` returns what `burst status` shows. `said` are lines to print before. `runs`
    tells that the burst ends by itself, after what runs there. Raises BurstError once
    the burst cannot reach that state. Ctrl-C ends only the wait.
    """
    began = time.monotonic()
    goes_on = f"{burst_id} is still being taken down; to see it: burst status"
    if runs:
        goes_on = f"{burst_id} still runs; to end it: burst down {burst_id}"
    elif until == "online":
        goes_on = f"{burst_id} is still being made; to cancel it: burst down {burst_id}"
    with _progress(burst_id, goes_on, said) as show:
        row = wait_for_state(
            _rows(look, burst_id),
            until,
            show,
            _LEAVING if until == "online" else (),
            # Who waits for that has just taken it down.
            "" if until == "inactive" else f"burst down {burst_id}",
        )
    took = fsd(round(time.monotonic() - began, 1))
    if until == "online" and row.isolated:
        click.echo(f"{row.hosts} is an instance of its own after {took}")
    elif until == "online":
        click.echo(f"{joined_text(row)} after {took}")
    else:
        click.echo(f"{burst_id} is gone after {took}: {row.result}")
    return row


def watch_resize(look: Look, burst_id: str, nodes: int, said: Iterable[str]) -> None:
    """Wait until a burst that is online has `nodes` nodes, and print that.

    `said` are lines to print before. Raises BurstError if its resize ends with another
    number of nodes, or it is not online any more. Ctrl-C ends only the wait.
    """
    began = time.monotonic()
    rows = _rows(look, burst_id)
    goes_on = f"the resize of {burst_id} continues; to see it: burst status"
    with _progress(burst_id, goes_on, said) as show:
        while (row := next(rows)).resize and row.state == "online":
            show(row)
    if row.state != "online":
        raise BurstError(f"{burst_id} is in state {row.state}: {row.why}")
    if row.nodes != nodes:
        raise BurstError(
            f"{burst_id} has {count_nodes(row.nodes)}, not {nodes}",
            f"burst explain {burst_id} says why",
        )
    took = fsd(round(time.monotonic() - began, 1))
    click.echo(f"{burst_id} has {count_nodes(nodes)}, {row.hosts}, after {took}")


@contextlib.contextmanager
def _progress(
    burst_id: str, goes_on: str, said: Iterable[str]
) -> Iterator[Callable[[BurstRow], None]]:
    """Yield a function that shows a burst's state; say after Ctrl-C that it goes on."""
    try:
        # Inside `try`: a person who has read the lines may press Ctrl-C at once.
        for line in said:
            click.echo(line)
        with show_wait(f"{burst_id}: requested") as update:
            yield lambda row: update(line_of(row))
    except KeyboardInterrupt:
        click.echo(f"\nno longer waiting: {goes_on}", err=True)
        raise


def wait_for_state(
    rows: Iterator[BurstRow],
    until: str,
    show: Callable[[BurstRow], None],
    ends: Collection[str],
    down: str,
) -> BurstRow:
    """Return the first of a burst's rows that has the state `until`; show the others.

    Raises BurstError for a row with one of the states `ends`, and for a quarantined
    burst; `down` is the command that takes the burst down.
    """
    while (row := next(rows)).state != until:
        if row.state == "quarantined":
            raise BurstError(f"{row.id} is quarantined: {row.why}", down)
        if row.state in ends:
            advice = "its deletion continues: burst status" if row.live else ""
            raise BurstError(f"{row.id} ended: {row.why}", advice)
        show(row)
    return row


def _rows(look: Look, burst_id: str) -> Iterator[BurstRow]:
    while True:
        try:
            yield row_of(look(), burst_id)
        except CallsTooOften:
            time.sleep(_LATER)
        time.sleep(_EVERY)


def row_of(status: Row, burst_id: str) -> BurstRow:
    """Return the row of one burst. Raises BurstError if there is none."""
    for row in bursts_of(status):
        if row.id == burst_id:
            return row
    raise BurstError(f"there is no burst {burst_id}", "burst status -a lists them")


def joined_text(row: BurstRow) -> str:
    """Return which nodes of an online burst joined; it may have begun with fewer."""
    if row.online in (None, row.nodes):
        return f"{row.hosts} joined as {name_ranks(row.ranks)}"
    why = f"burst explain {row.id} says which"
    return f"{row.online} of {row.nodes} nodes of {row.hosts} joined ({why})"


def line_of(row: BurstRow) -> str:
    """Return a line with the state of a burst."""
    online = "?" if row.online is None else row.online
    text = f"{row.id}: {row.state}, {online} of {row.nodes} nodes online"
    return f"{text}; {row.note}" if row.note else text
