# SPDX-License-Identifier: MIT
"""kill -9 of the daemon at each step of a burst, whatever provider makes it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from burst.model.burst import BurstId
from tests.cli.cli_harness import DaemonProcess
from tests.flux.site import Site
from tests.support.brokers import brokers
from tests.support.waiting import wait_until

SOON = {"idle": "0.3s"}
# A job that runs until its file is made.
UNTIL_TOLD = ("sh", "-c", "while [ ! -e go ]; do sleep 0.05; done")
# The same, and it says where it runs: all brokers share a machine.
TELLS_UNTIL_TOLD = ("sh", "-c", f"flux getattr hostname; {UNTIL_TOLD[-1]}")
# A follower that joins takes its burst on, whatever the provider's call waits for.
_GATES = ("before-provision", "after-provision", "join", "before-reap", "after-reap")


def kill_at_each_step(site: Site, *, start_alone: bool = True) -> BurstId:
    """Kill the daemon before and after each call, and in each state of a burst.

    The burst of a job of two nodes goes on under the next daemon, and the job runs
    once. `start_alone`: followers that were asked for start without a daemon. Returns
    the burst's id; nothing of it is left on the lead.
    """
    site.write(deadlines=SOON)
    for gate in _GATES:
        site.close_gate(gate)
    with _daemon(site) as daemon:
        job = site.submit("-N2", "--requires=burst", *TELLS_UNTIL_TOLD)
        site.wait_at_gate("before-provision")
        burst_id = _kill_in(site, daemon, "provision", followers=0)
    site.open_gate("before-provision")
    with _daemon(site) as daemon:
        site.wait_at_gate("after-provision")
        _kill_in(site, daemon, "provision", followers=2 if start_alone else None)
    site.open_gate("after-provision")
    with _daemon(site) as daemon:
        site.wait_for_burst("join")
        _kill_in(site, daemon, "join")
    site.open_gate("join")
    with _daemon(site) as daemon:
        site.wait_for_job(job, "RUN")
        site.wait_for_burst("online")
        _kill_in(site, daemon, "online")
    with _daemon(site) as daemon:
        assert site.wait_for_burst("online") == burst_id
        site.cli.run("down", burst_id, "--no-wait")
        site.cli.wait_for_state(burst_id, "drain")
        _kill_in(site, daemon, "drain")
    with _daemon(site) as daemon:
        site.cli.wait_for_state(burst_id, "drain")
        assert site.job(job) == "RUN"
        (site.instance.directory / "go").touch()
        site.wait_for_job(job, "COMPLETED")
        site.wait_at_gate("before-reap")
        _kill_in(site, daemon, "reap")
    site.open_gate("before-reap")
    with _daemon(site) as daemon:
        site.wait_at_gate("after-reap")
        _kill_in(site, daemon, "reap", followers=0)
    site.open_gate("after-reap")
    with _daemon(site):
        assert site.wait_for_end(burst_id)["result"] == "canceled"
        assert [burst["id"] for burst in site.bursts()] == [burst_id], "one burst"
        assert sorted(site.output(job)) == ["burst-0-0", "burst-0-1"]
        site.check_that_nothing_is_left()
    return burst_id


@contextmanager
def _daemon(site: Site) -> Iterator[DaemonProcess]:
    """Yield a daemon that serves, though a call of it may wait at a gate at once."""
    with DaemonProcess(site.cli) as daemon:
        daemon.says(" serves ")
        yield daemon


def _kill_in(
    site: Site, daemon: DaemonProcess, state: str, followers: int | None = 2
) -> BurstId:
    """Kill the daemon, with the one burst in that state; return the burst's id.

    So many followers are started, or have ended, without it; None if that is not known.
    """
    daemon.end(signal.SIGKILL)
    (record,) = site.records()
    assert record.state.value == state
    wait_until(
        lambda: followers in (None, len(brokers(record.id))),
        lambda: f"{followers} followers: {brokers(record.id)}",
    )
    return record.id
