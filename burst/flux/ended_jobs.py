# SPDX-License-Identifier: MIT
"""Reads jobs that ended before the journal was opened, which sends active jobs only.

The job manager keeps a job that has ended until it is purged, also over a restart of
the instance (Flux's getattr.c and restart.c). The KVS, where job-info finds jobs, gets
the last events of a job only a moment after its end.
"""

from __future__ import annotations

import errno
from collections.abc import Collection

from burst.errors import BurstError
from burst.flux.rpc import RpcClient, decode_response
from burst.model.jobid import JobId

_ABSENT = (errno.EINVAL, errno.ENOENT)
"""What is answered for a job that the job manager does not have, and for an attribute
that the job lacks."""


def read_ended(client: RpcClient, jobs: Collection[JobId]) -> dict[JobId, bytes]:
    """Return `eventlog`, `jobspec` and `R` of each job, in a JSON object.

    Jobs that Flux has purged are left out. Raises LeadGone, Unreadable, LeadError.
    """
    found = _read(client, jobs, "eventlog", "jobspec")
    # Read separately, as a job that never ran has no R.
    for job, allocated in _read(client, found, "R").items():
        found[job] = b"%b,%b" % (found[job][:-1], allocated[1:])
    return found


def _read(
    client: RpcClient, jobs: Collection[JobId], *attributes: str
) -> dict[JobId, bytes]:
    asked = (("job-manager.getattr", {"id": job, "attrs": attributes}) for job in jobs)
    found: dict[JobId, bytes] = {}
    for job, (topic, response) in zip(jobs, client.exchange(asked), strict=True):
        if response.errnum == 0:
            # Not decoded here: what its user wrote may nest too deeply.
            found[job] = response.payload
        elif response.errnum not in _ABSENT:
            error = decode_response(topic, response)
            assert isinstance(error, BurstError)
            raise error
    return found
