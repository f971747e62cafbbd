# SPDX-License-Identifier: MIT
"""Drains that Flux itself made, told from those of persons by their reason.

Flux keeps of a drain its reason and its time, and not who made it. These are the
reasons that flux-core 0.88 gives: job-manager's perilog.c, job-exec's barrier.c,
bulkexec.c and job-exec.c, rlist_verify_ex for resource's topo.c, and the unit file
flux-housekeeping@.service.
"""

from __future__ import annotations

import re

import msgspec

_DMESG = "flux dmesg on the lead"


class FluxDrain(msgspec.Struct, frozen=True, kw_only=True):
    """What Flux drained a rank for."""

    before_start: bool
    """Whether no job of the rank can have begun: nodes that come again are no better,
    unless what failed is mended."""
    output: str
    """Where a person sees what failed."""


def _of(before_start: bool, output: str = _DMESG) -> FluxDrain:
    return FluxDrain(before_start=before_start, output=output)


def _unit(name: str, *, before_start: bool = False) -> FluxDrain:
    """Return what is said of a script that may run as a unit of systemd on the node."""
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
    """Return what Flux drained a rank for; None where a person did, or the daemon."""
    return next((drain for form, drain in _PATTERNS if form.fullmatch(reason)), None)
