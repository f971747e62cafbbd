# SPDX-License-Identifier: MIT
"""Names of bursts, jobs, providers and slots as a person types them.

An id may be whole, a prefix of the id, or `last`. The functions that complete names in
a shell are given to click as `shell_complete`, and ask the daemon. An error gives no
names and no message: a person who presses Tab wants nothing else on the screen.
"""

from __future__ import annotations

import contextlib
import io
import re
import threading
from collections.abc import Callable, Iterator

import click

from burst.cli.listing import Row
from burst.cli.target import Target
from burst.cli.wait_for_burst import bursts_of
from burst.errors import BurstError

LAST = "last"
"""Typed in place of an id: the burst that was made last."""
_WHOLE = re.compile(r".+-[0-9a-f]{6}")


def find_burst(typed: str, look: Callable[[], Row], also: str = "") -> str:
    """Return the id of the burst that a person typed.

    `look` returns what `burst status` shows, with the bursts in the order in which they
    were made; it is not called for a whole id, which may be that of a burst whose
    record cannot be read. A prefix that live bursts have is not one of ended bursts.
    Raises BurstError if several ids begin with the text, if none does, and for `last`
    if there is no burst. `also` is added to the error if none does.
    """
    if _WHOLE.fullmatch(typed):
        return typed
    rows = bursts_of(look())
    if typed == LAST:
        if not rows:
            raise BurstError("there is no burst", "burst status -a lists ended ones")
        return rows[-1].id
    ids = [row.id for row in rows]
    live = [row.id for row in rows if row.live]
    found = _beginning_with(typed, live) or _beginning_with(typed, ids)
    if not found:
        names = ", ".join(sorted(live)) or "none"
        raise BurstError(f"there is no burst {typed!r}{also}", f"live bursts: {names}")
    if len(found) > 1:
        raise BurstError(
            f"{typed} matches {len(found)} bursts: {', '.join(found)}",
            "type more of the id",
        )
    return found[0]


def _beginning_with(typed: str, ids: list[str]) -> list[str]:
    """Return the ids that begin with the text, which is not empty."""
    return sorted(each for each in ids if typed and each.startswith(typed))


LONGEST_S = 1.5
"""Seconds that one completion may take; a person waits for each Tab."""
_Names = Callable[[Row], Iterator[str]]
_Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _completes(names: _Names) -> _Complete:
    """Return a function for click; `names` takes them from the answer to `status`."""

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[str]:
        target = Target(context.params.get("config"), context.params.get("uri"))
        given = context.params.get(parameter.name or "")
        before = set(given) if isinstance(given, tuple | list) else set()
        found = _quietly(lambda: list(names(_ask(target))))
        spelled = (_as_typed(name, incomplete) for name in dict.fromkeys(found))
        return [
            name
            for name in spelled
            if name.startswith(incomplete) and name not in before
        ]

    return complete


def _as_typed(name: str, incomplete: str) -> str:
    """Return a job's id with `f` for `ƒ`, which Flux takes too, if `f` was typed."""
    is_plain = incomplete.startswith("f") and name.startswith("ƒ")
    return f"f{name[1:]}" if is_plain else name


def _ask(target: Target) -> Row:
    """Return the status; without a daemon, only the providers of the settings."""
    try:
        with target.lead() as lead:
            return lead.call("status", {}, timeout=LONGEST_S)
    except BurstError:
        providers = target.settings().providers
        return {"providers": [{"name": name} for name in providers]}


def _quietly(look: Callable[[], list[str]]) -> list[str]:
    """Return what is found in time; do not wait longer for a lead that hangs."""
    found: list[str] = []

    def run() -> None:
        # The settings may be wrong, the lead gone, a binding missing: `burst status`
        # reports that; a line here would be written over the command being typed.
        with contextlib.suppress(Exception):
            found.extend(look())

    thread = threading.Thread(target=run, daemon=True)
    with contextlib.redirect_stderr(io.StringIO()):
        thread.start()
        thread.join(LONGEST_S)
    return list(found)


def _bursts(status: Row) -> Iterator[str]:
    yield from (row.id for row in bursts_of(status))


def _live_bursts(status: Row) -> Iterator[str]:
    yield from (row.id for row in bursts_of(status) if row.live)


def _isolated(status: Row) -> Iterator[str]:
    for row in bursts_of(status):
        if row.isolated:
            yield row.id
            yield from row.jobs


def _held(status: Row) -> Iterator[str]:
    yield from status.get("held", ())


def _jobs(status: Row) -> Iterator[str]:
    yield from _held(status)
    for row in bursts_of(status):
        yield from row.jobs


def _jobs_and_bursts(status: Row) -> Iterator[str]:
    yield from _jobs(status)
    yield from _bursts(status)


def _providers(status: Row) -> Iterator[str]:
    yield from (row["name"] for row in status.get("providers", ()))


def _slots(status: Row) -> Iterator[str]:
    yield from (row["hosts"] for row in status.get("slots", ()))


def _slot_names(status: Row) -> Iterator[str]:
    yield from (row["name"] for row in status.get("slots", ()))


complete_burst = _completes(_live_bursts)
complete_isolated = _completes(_isolated)
complete_held = _completes(_held)
complete_job = _completes(_jobs)
complete_job_or_burst = _completes(_jobs_and_bursts)
complete_provider = _completes(_providers)
complete_slot = _completes(_slots)
complete_slot_name = _completes(_slot_names)
