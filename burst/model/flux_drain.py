# SPDX-License-Identifier: MIT
"""Recognizes drains that Flux itself made, by their reason.

Flux records the reason and the time of a drain, but not who made it. These are the
reasons that flux-core 0.88 gives: job-manager's perilog.c, job-exec's barrier.c,
bulkexec.c and job-exec.c, rlist_verify_ex for resource's topo.c, and the unit file
flux-housekeeping@.service.
"""

from __future__ import annotations

import re

import msgspec

_DMESG = "flux dmesg on the lead"


class FluxDrain(msgspec.Struct, frozen=True, kw_only=True):
    """Why Flux drained a rank."""

    before_start: bool
    """Whether it happened before any job on the rank could begin: new nodes fail in the
    same way until the cause is fixed."""
    output: str
    """Where a person sees what failed."""


def _of(before_start: bool, output: str = _DMESG) -> FluxDrain:
    return FluxDrain(before_start=before_start, output=output)


def _unit(name: str, *, before_start: bool = False) -> FluxDrain:
    """Return the drain for a script that may run as a systemd unit on the node."""
    unit = f"journalctl -u 'flux-{name}@*' on the node where systemd runs it"
    return _of(before_start, f"{_DMESG}, or {unit}")


_REASONS = (
    (
        r"prolog (failed|timed out|canceled then timed out) for job \S+",
        _unit("prolog", before_start=True),
    ),
    (
        r"epilog (failed|timed out|canceled then timed out) for job \S+",
        _unit("epilog"),
    ),
    (r"housekeeping@\S+ .+", _unit("housekeeping")),
    (r"unkillable user processes for job \S+", _of(False)),
    (r"job \S+ start timeout: possible node hang", _of(True)),
    (r"\S+ terminated before first barrier", _of(True)),
    (r"sdexec reports .+ for job \S+", _of(False)),
    (r"sdexec constraint check failed on \S+ for job .+", _of(True)),
    (r"rank \d+ got hostname '.*', expected '.*'", _of(True)),
    (r"rank \d+ \(.*\) missing resources: .+", _of(True)),
)
_PATTERNS = tuple((re.compile(text), drain) for text, drain in _REASONS)


def flux_drain(reason: str) -> FluxDrain | None:
    """Return why Flux drained a rank; None if a person or the daemon drained it."""
    return next((drain for form, drain in _PATTERNS if form.fullmatch(reason)), None)
