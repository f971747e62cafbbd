# SPDX-License-Identifier: MIT
"""Which jobs may use which lent ranks, as the burst daemon tells sched-burst.

sched-burst loads this file. The leases are kept in the KVS, where only the instance
owner writes: a scheduler that is loaded again, or whose lead was restarted, uses those
of the one before until the daemon sends others. While there is no scheduler, the daemon
begins nothing, so the kept leases can only name too many ranks, never too few.

Like sched-burst, this runs in a broker, by Flux's Python.
"""

import os

from flux.constants import FLUX_KVS_SYNC
from flux.idset import IDset
from flux.kvs import KVSTxn, commit_async, get_key_direct

KEY = "sched-burst.leases"
WRONG = (AttributeError, TypeError, ValueError, OSError)
"""What `Leases` raises if it is given something else than leases."""


def keeps_apart(config):
    """Tell by the configuration whether no job may use lent ranks without a lease."""
    guests = config.get("access", {}).get("allow-guest-user") is True
    table = config.get("ingest", {}).get("frobnicator", {}).get("burst", {})
    return guests and not (table.get("any_job") or table.get("share_users"))


class Leases:
    """The leased ranks, and those that each job may use."""

    def __init__(self, told):
        """Take `{"jobs": {"JOBID": IDSET}, "ranks": IDSET}`. Raises one of WRONG."""
        jobs = told.get("jobs", {})
        self.jobs = {int(job): IDset(ranks) for job, ranks in jobs.items()}
        self.ranks = IDset(told.get("ranks", ""))
        self.told = {"jobs": jobs, "ranks": str(self.ranks)}


class Memory:
    """Keeps the leases in the KVS."""

    def __init__(self, handle):
        self._handle = handle
        self._kept = None  # None also while a write is under way, and once one failed
        self._latest = None  # what was written last, whether that has ended or not

    def recall(self):
        """Return the kept leases; none if none were ever kept. Raises one of WRONG."""
        try:
            self._kept = get_key_direct(self._handle, KEY)
        except FileNotFoundError:
            return Leases({})
        return Leases(self._kept)

    def keep(self, leases, done):
        """Write leases unless they are kept already; then call `done`.

        It gets None, or the reason why they could not be written.
        """
        if leases.told == self._kept:
            done(None)
            return
        # Until the last write has ended, none of them is what will be there in the end.
        self._kept, self._latest = None, leases.told
        change = KVSTxn(self._handle)
        change.put(KEY, leases.told)
        # A plain commit is lost if the lead is killed.
        written = commit_async(self._handle, flags=FLUX_KVS_SYNC, _kvstxn=change)
        written.then(self._written, (leases.told, done))

    def _written(self, future, asked):
        told, done = asked
        try:
            future.get()
        except OSError as error:
            done(f"{KEY}: {error.strerror or os.strerror(error.errno)}")
        else:
            if told is self._latest:
                self._kept = told
            done(None)
