# SPDX-License-Identifier: MIT
"""What events of growth and shrink change in a burst.

Each function returns the fields of the burst that change. An event has all sizes of the
burst at that moment, not the changes: so the last of several such events yields the
same burst as all of them.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from burst.core.burst_jobs import IN_USE
from burst.model.burst import Burst, Lease, Resize
from burst.model.event import Event
from burst.model.ranks import format_hostlist, format_idset, parse_hostlist, parse_idset


def size_context(burst: Burst, lease: Lease, **more: Any) -> dict[str, Any]:
    """Return the context of an event after which a burst has the hosts of a lease.

    `more` must have `online`: the ranks that have to stay online. A failed growth is
    remembered unless `more` has another `growth_failed`.
    """
    known = {"growth_failed": True} if burst.growth_failed else {}
    return {
        "hosts": format_hostlist(lease.hosts),
        "ranks": format_idset(lease.ranks),
        **known,
        **more,
    }


def grow(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes when a growth begins: further ranks are leased."""
    resize = _begun("grow", event)
    resize = msgspec.structs.replace(resize, called=event.timestamp)
    # A burst that is asked to grow is needed, so it is not idle.
    return {**_sizes(burst, event), **IN_USE, "resize": resize}


def grown(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes at the end of a growth: all further ranks are online."""
    return {**_sizes(burst, event), **IN_USE, "resize": None}


def shrink(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes when a shrink begins: its last ranks get no more jobs."""
    return {**_sizes(burst, event), "resize": _begun("shrink", event)}


def shrink_start(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes once nothing runs on its last ranks, in a shrink."""
    if burst.resize is None or burst.resize.kind == "grow":
        raise ValueError("it does not shrink")
    called = msgspec.structs.replace(burst.resize, called=event.timestamp)
    return {"resize": called}


def shrunk(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes at the end of a shrink: its last ranks are gone."""
    return {**_sizes(burst, event), "resize": None}


def _begun(kind: Literal["grow", "shrink"], event: Event) -> Resize:
    context = event.context
    return Resize(
        kind=kind,
        nodes=int(context["nodes"]),
        before=int(context["before"]),
        since=event.timestamp,
        requested=bool(context["requested"]),
        why=str(context["note"]),
    )


def _sizes(burst: Burst, event: Event) -> dict[str, Any]:
    context = event.context
    hosts = parse_hostlist(context["hosts"])
    ranks = tuple(sorted(parse_idset(context["ranks"])))
    if not hosts or len(hosts) != len(ranks):
        raise ValueError(f"{len(hosts)} hosts, {len(ranks)} ranks")
    return {
        "lease": msgspec.structs.replace(burst.lease, hosts=hosts, ranks=ranks),
        "expected": parse_idset(context["online"]),
        "growth_failed": bool(context.get("growth_failed")),
    }
