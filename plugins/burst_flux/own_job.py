# SPDX-License-Identifier: MIT
"""The job of the other instance in which the lead itself runs, if there is one.

Its nodes are the lead's for as long as the lead runs, so no burst gets them. A broker
with `[bootstrap]` in its configuration has no attributes `jobid` and `parent-uri`. So
the job is found by its memo `uri` (flux-uri(1)), which `burst lead batch` sets.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from burst.model.ranks import parse_hostlist
from burst_flux.jobs import FluxJob


def find_own_job(jobs: Iterable[FluxJob], lead: str) -> FluxJob | None:
    """Return the job whose memo is the URI of the lead, which runs on this host."""
    own = urlsplit(lead)
    host = _short(own.hostname or socket.gethostname())
    for job in jobs:
        told = urlsplit(job.uri)
        if own.path and (_short(told.hostname or ""), told.path) == (host, own.path):
            return job
    return None


def job_on_this_host(jobs: Iterable[FluxJob]) -> FluxJob | None:
    """Return one of these jobs that has nodes on this host."""
    host = _short(socket.gethostname())
    for job in jobs:
        if host in map(_short, parse_hostlist(job.nodelist)):
            return job
    return None


def _short(host: str) -> str:
    return host.lower().partition(".")[0]
