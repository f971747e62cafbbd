# SPDX-License-Identifier: MIT
"""The time from submission to start of a job that bursts, against brokers by hand.

Ours: a burstable job, the daemon with its default settings, and a provider.
By hand: a plain job; as soon as it is submitted, a script that has all files ready
starts the same followers in the same way. Nothing is held, stored or released.

Rounds of both take turns in one run, beside the same daemon. They use real Flux if
`flux` is on PATH, and the embedded lead otherwise. With Flux they also run for the
providers `flux` and `command`, and with Slurm's programs for `slurm`. By hand,
followers start as the provider starts them: for `command` with the same program.

    python benchmarks/path.py [--json] [--rounds 12]
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from burst_embedded import lead_client

from benchmarks.hands import NODES, Hand, Place, command, local, slurm
from benchmarks.hands import flux as other_flux
from benchmarks.table import Goal, Measure, main_of
from burst import flux
from burst.lead import Lead, WholeQueue
from burst.model.jobid import JobId
from tests.cli.cli_harness import CliHarness, open_harness
from tests.contract.whole_queue import QueueReader
from tests.embedded_instance import embedded_instance
from tests.flux_instance import FLUX, flux_instance
from tests.slurm.slurm_lab import missing
from tests.support.waiting import wait_until

DEADLINE_S = 60.0
_GOAL = Goal("<=", 1.15)


class Stand:
    """An instance on which jobs are timed."""

    def __init__(self, instance: Any, lead: Lead) -> None:
        self._instance = instance
        self._lead = lead
        self._changed = threading.Event()
        lead.listen(self._changed.set)

    def submit(self, *, burstable: bool) -> JobId:
        """Submit a job that needs followers: own nodes are too few."""
        job: JobId = self._instance.submit(
            nodes=NODES,
            slots=NODES,
            cores=4,
            burstable=burstable,
            command=["true"],
        )
        return job

    def started(self, job: JobId) -> float:
        """Wait for the start of a job; return it in seconds since the epoch."""
        return self._wait_for(lambda: self._start_of(job))

    def come_to_rest(self) -> None:
        """Wait until every follower has left."""
        self._wait_for(lambda: float(len(self._lead.observe().online) == 1))

    def _start_of(self, job: JobId) -> float:
        view = self._lead.observe().jobs.get(job)
        return view.t_start if view else 0.0

    def _wait_for(self, look: Callable[[], float]) -> float:
        ends = time.monotonic() + DEADLINE_S
        while not (found := look()):
            left = ends - time.monotonic()
            assert left > 0, f"it took more than {DEADLINE_S:.0f} s"
            self._changed.wait(left)
            self._changed.clear()
        return found


def measure(rounds: int) -> list[Measure]:
    """Return all measures."""
    places = {"local": local}
    if FLUX:
        places |= {"flux": other_flux, "command": command}
    if FLUX and not missing():
        places["slurm"] = slurm
    found: list[Measure] = []
    for name, opened in places.items():
        with opened() as place:
            found += _measure(name, place, rounds)
    return found


def _measure(name: str, place: Place, rounds: int) -> list[Measure]:
    ours: list[float] = []
    by_hand: list[float] = []
    with stand(name, place) as (stands, cli, hand):
        for _ in range(rounds):
            ours.append(burst(stands, cli))
            by_hand.append(start_by_hand(stands, hand))
    middle, other = statistics.median(ours), statistics.median(by_hand)
    lead = "" if FLUX else " on the embedded lead (no flux on PATH)"
    return [
        Measure(f"{name}: by the daemon{lead}, p50", middle, "s"),
        Measure(f"{name}: by hand, p50", other, "s"),
        Measure(f"{name}: least by the daemon", min(ours), "s"),
        Measure(f"{name}: least by hand", min(by_hand), "s"),
        Measure(f"{name}: daemon against hand, p50", middle / other, "x", _GOAL),
        Measure(f"{name}: what the daemon adds, p50", (middle - other) * 1000, "ms"),
    ]


@contextmanager
def stand(name: str, place: Place) -> Iterator[tuple[Stand, CliHarness, Hand]]:
    """Yield an instance with a daemon beside it."""
    begin = flux_instance if FLUX else embedded_instance
    connect = flux.connect if FLUX else lead_client.connect
    with begin() as instance, open_harness(instance) as cli:
        cli.write(
            providers={name: place.table},
            daemon={"cadence": "10s"},
            deadlines={"idle": "0s"},
        )
        with cli.daemon(), closing(connect(instance.uri)) as lead:
            assert isinstance(lead, WholeQueue)
            # Jobs of both kinds are watched in the same way.
            lead.follow_queue(QueueReader(lead), lambda *_: True)
            hand = place.hand(lead.identity())
            try:
                yield Stand(instance, lead), cli, hand
            finally:
                hand.end()


def burst(stands: Stand, cli: CliHarness) -> float:
    """Start a job by bursting; return the seconds from its submission."""
    began = time.time()
    job = stands.submit(burstable=True)
    took = stands.started(job) - began
    wait_until(lambda: not live(cli), "the burst to end")
    stands.come_to_rest()
    return took


def live(cli: CliHarness) -> list[Any]:
    """Return the bursts that are not inactive."""
    return [row for row in cli.status()["bursts"] if row["state"] != "inactive"]


def start_by_hand(stands: Stand, hand: Hand) -> float:
    """Start a job on followers by hand; return the seconds from its submission."""
    starters = hand.prepare()
    began = time.time()
    job = stands.submit(burstable=False)
    for start in starters:
        start()
    took = stands.started(job) - began
    hand.end()
    stands.come_to_rest()
    return took


if __name__ == "__main__":
    main_of(
        __doc__,
        measure,
        rounds=(12, "number of rounds, by the daemon and by hand"),
    )
