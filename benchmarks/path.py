# SPDX-License-Identifier: MIT
"""From submission to start: a job that bursts, against the same brokers by hand.

Ours: a burstable job, the daemon with its default settings, and `burst_local`.
By hand: a plain job; as soon as it is submitted, a script that has all files ready
starts the same followers in the same way. Nothing is held, stored or released.

Rounds of both take turns in one run, beside the same daemon, on real Flux where `flux`
is on PATH, and on the embedded lead elsewhere.

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
from burst_local import LocalProvider, launch
from burst_local.burst_dirs import ProviderDirectory

from benchmarks.table import Goal, Measure, main_of
from burst import flux
from burst.errors import NotFound
from burst.kits.broker import follower_config
from burst.lead import Lead
from burst.model.jobid import JobId
from burst.provider import BurstSpec
from burst.testing import example_spec
from tests.cli.cli_harness import CliHarness, open_harness
from tests.embedded_instance import embedded_instance
from tests.flux_instance import FLUX, flux_instance
from tests.support.waiting import wait_until

NODES = 4
DEADLINE_S = 60.0
_TIMED = "timed"
"""Attribute of the jobs of both kinds: by it they are watched, in the same way."""


class Stand:
    """An instance, and how a job on it is timed."""

    def __init__(self, instance: Any, lead: Lead) -> None:
        self._instance = instance
        self._lead = lead
        self._changed = threading.Event()
        lead.listen(self._changed.set)

    def submit(self, *, burstable: bool) -> JobId:
        """Submit a job that only followers are large enough for."""
        job: JobId = self._instance.submit(
            nodes=NODES,
            slots=NODES,
            cores=4,
            burstable=burstable,
            command=["true"],
            attributes={_TIMED: True},
        )
        return job

    def started(self, job: JobId) -> float:
        """Return when the job started, in seconds since the epoch."""
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


class Hand:
    """A person with a script, who starts followers when they submit a job."""

    def __init__(self, lead: Lead, cli: CliHarness) -> None:
        identity = lead.identity()
        settings = LocalProvider.Settings(dir=str(cli.directory / "h"), cores=4)
        self._provider = LocalProvider("hand", settings, identity.owner)
        home = ProviderDirectory(cli.directory / "h", identity.owner, "hand")
        self._spec = example_spec(identity, 0, "local", NODES)
        self._place = home.burst(self._spec.burst_id)
        self._home = home

    def prepare(self) -> list[Callable[[], int]]:
        """Write all files, and return what starts the followers."""
        spec, place = self._spec, self._place
        self._home.open()
        place.make(spec, follower_config(spec.lead, spec.hosts, spec.ranks))
        return [self._starter(spec, host) for host in spec.hosts]

    def end(self) -> None:
        """End the followers, and remove their files."""
        wait_until(self._is_gone, "the followers to end")

    def _starter(self, spec: BurstSpec, host: str) -> Callable[[], int]:
        follower = self._place.follower(host)
        command = launch.follower_command(FLUX or "flux")
        argv = command(spec, host, self._place.config, follower.path)
        tags = {
            "BURST_OWNER": spec.owner,
            "BURST_PROVIDER": "hand",
            "BURST_ID": spec.burst_id,
            "BURST_HOST": host,
        }
        return lambda: launch.start(argv, follower, tags, {})

    def _is_gone(self) -> bool:
        try:
            self._provider.reap(self._spec.burst_id)
        except NotFound:
            return True
        return False


def measure(rounds: int) -> list[Measure]:
    """Run it all."""
    ours: list[float] = []
    by_hand: list[float] = []
    with stand() as (stands, cli, hand):
        for _ in range(rounds):
            ours.append(burst(stands, cli))
            by_hand.append(start_by_hand(stands, hand))
    middle, other = statistics.median(ours), statistics.median(by_hand)
    kind = "Flux" if FLUX else "the embedded lead (no flux on PATH)"
    return [
        Measure(f"by the daemon on {kind}, p50", middle, "s"),
        Measure("by hand, p50", other, "s"),
        Measure("least by the daemon", min(ours), "s"),
        Measure("least by hand", min(by_hand), "s"),
        Measure("daemon against hand, p50", middle / other, "x", Goal("<=", 1.15)),
        Measure("what the daemon adds, p50", (middle - other) * 1000, "ms"),
    ]


@contextmanager
def stand() -> Iterator[tuple[Stand, CliHarness, Hand]]:
    """Yield an instance with a daemon beside it."""
    begin = flux_instance if FLUX else embedded_instance
    connect = flux.connect if FLUX else lead_client.connect
    with begin() as instance, open_harness(instance) as cli:
        cli.write(daemon={"cadence": "10s", "observe": "2s"}, deadlines={"idle": "0s"})
        with cli.daemon(), closing(connect(instance.uri, attribute=_TIMED)) as lead:
            hand = Hand(lead, cli)
            try:
                yield Stand(instance, lead), cli, hand
            finally:
                hand.end()


def burst(stands: Stand, cli: CliHarness) -> float:
    """Have a job start by bursting; return the time from submission, in seconds."""
    began = time.time()
    job = stands.submit(burstable=True)
    took = stands.started(job) - began
    wait_until(lambda: not live(cli), "the burst to end")
    stands.come_to_rest()
    return took


def live(cli: CliHarness) -> list[Any]:
    """Return the bursts that are not over."""
    return [row for row in cli.status()["bursts"] if row["state"] != "inactive"]


def start_by_hand(stands: Stand, hand: Hand) -> float:
    """Have a job start on followers of ours; return the time, in seconds."""
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
    main_of(__doc__, measure, rounds=(12, "how often both are done"))
