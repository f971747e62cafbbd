# SPDX-License-Identifier: MIT
"""Whose the lent ranks are, as the burst daemon tells sched-burst. Loaded by it.

It is kept in the KVS, where only the instance owner writes: a scheduler that is loaded
anew, or whose lead was restarted, goes on with what the one before was told, until the
daemon tells it. While no scheduler is there, the daemon begins nothing, so what is kept
names at most too many ranks.

Like sched-burst, this runs in a broker, by Flux's Python.
"""

import os

from flux.constants import FLUX_KVS_SYNC
from flux.idset import IDset
from flux.kvs import KVSTxn, commit_async, get_key_direct

KEY = "sched-burst.leases"
WRONG = (AttributeError, TypeError, ValueError, OSError)
"""What `Leases` raises of something that says no leases."""


def keeps_apart(config):
    """Tell whether lent ranks without a lease are nobody's, by the configuration."""
    guests = config.get("access", {}).get("allow-guest-user") is True
    table = config.get("ingest", {}).get("frobnicator", {}).get("burst", {})
    return guests and not (table.get("any_job") or table.get("share_users"))


class Leases:
    """Which ranks are leased, and which of them for which jobs."""

    def __init__(self, told):
        """Take `{"jobs": {"JOBID": IDSET}, "ranks": IDSET}`. Raises one of WRONG."""
        jobs = told.get("jobs", {})
        self.jobs = {int(job): IDset(ranks) for job, ranks in jobs.items()}
        self.ranks = IDset(told.get("ranks", ""))
        self.told = {"jobs": jobs, "ranks": str(self.ranks)}


class Memory:
    """The leases that are in the KVS."""

    def __init__(self, handle):
        self._handle = handle
        self._kept = None

    def recall(self):
        """Return what is kept, none if nothing ever was. Raises one of WRONG."""
        try:
            self._kept = get_key_direct(self._handle, KEY)
        except FileNotFoundError:
            return Leases({})
        return Leases(self._kept)

    def keep(self, leases, done):
        """Write them, unless they are there; then call `done` with why not, or None."""
        if leases.told == self._kept:
            done(None)
            return
        change = KVSTxn(self._handle)
        change.put(KEY, leases.told)
        # A plain commit is lost where the lead is killed.
        written = commit_async(self._handle, flags=FLUX_KVS_SYNC, _kvstxn=change)
        written.then(self._written, (leases.told, done))

    def _written(self, future, asked):
        told, done = asked
        try:
            future.get()
        except OSError as error:
            done(f"{KEY}: {error.strerror or os.strerror(error.errno)}")
        else:
            self._kept = told
            done(None)
