# SPDX-License-Identifier: MIT
"""A month in minutes: a site's daemon under many jobs, reloads, faults and SIGKILLs.

Jobs come in batches. Between two batches one thing happens, dealt from a shuffled deck
so that each happens in its share whatever the seed. Every so often the site falls idle,
and all bursts go.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from tests.cli.cli_harness import CommandResult, DaemonProcess
from tests.flux.site import Site
from tests.month import faulty
from tests.month.jobs import Jobs, Killing
from tests.support.waiting import HANG_S, wait_until

BATCH = 100
WAITING = 150
"""The most jobs that have not ended while more are submitted."""
IDLE_EVERY = 4
"""Batches after which the site falls idle until no burst is left."""
FAULT_S = 5.0
"""The longest that jobs wait for a provider that fails."""
NOWHERE_S = 60.0
"""Flux takes far less to end a job that has lost its node."""
PROVIDERS = ("east", "west")
# How many of a hundred batches are followed by what.
_DECK = {
    "nothing": 20,
    "kill_follower": 24,
    "fault": 20,
    "reload": 16,
    "reload_bad_file": 6,
    "kill_daemon": 8,
    "kill_lead": 6,
}
_NO_DAEMON_KILLED_AFTER = 0.6
"""Of all batches: the rest is one daemon's, so that its memory can be judged."""
_LOOK_S = 0.1
UNFREED = "until the scheduler is loaded again"
"""A daemon's log has it once for all that its scheduler keeps for jobs that ended."""


class Size(msgspec.Struct, frozen=True):
    """What the daemon takes up."""

    rss: int
    """Resident memory of the process, bytes."""
    records: dict[str, int]
    """How many the store has, by kind."""
    bytes: int
    """Of all records."""
    largest: int
    """Of one record, bytes."""


def _kind(key: str) -> str:
    """Return what a record is about, by its key: see burst/runtime/record_store.py."""
    return key.partition("/")[0]


def _end(daemon: DaemonProcess) -> None:
    if daemon.process.poll() is None:
        daemon.end()


class Month:
    """Drives one site through it."""

    def __init__(
        self, site: Site, jobs: int, seed: int, tell: Callable[[str], None]
    ) -> None:
        self.site = site
        self.killings: list[Killing] = []
        self.happened: dict[str, int] = dict.fromkeys(_DECK, 0)
        self.repaired = 0
        """Jobs that Flux itself could not go on with after its lead was killed."""
        self.reloaded = 0
        """Times that cores were left to no job after the lead was killed."""
        self._unfreed = 0
        """Of these, those that the daemon that runs has told."""
        self.sizes: list[Size] = []
        """Each time that the site was idle."""
        self.one_daemons: list[Size] = []
        """Those of them that are of the last daemon."""
        self._tell = tell
        self._batches = max(1, jobs // BATCH)
        self._random = random.Random(seed)
        self.jobs = Jobs(site.instance, self._random)
        self._faults = site.cli.directory / "faults"
        self._faults.mkdir()
        faulty.install(site.cli.directory / "month")
        self._stack = ExitStack()
        self._daemon: DaemonProcess | None = None
        self._write()

    @property
    def packages(self) -> str:
        """What a daemon needs on PYTHONPATH to find the provider."""
        return str(self.site.cli.directory / "month")

    def run(self) -> None:
        """Go through all of it; at its end no job is active and no burst is live."""
        with self._stack:
            self._start_daemon()
            for number, card in enumerate(self._deal(), 1):
                self.jobs.submit(BATCH)
                getattr(self, f"_{card}")()
                self.happened[card] += 1
                self._wait_for_jobs(WAITING)
                if number % IDLE_EVERY == 0:
                    self._mend()
                    self._fall_idle()
                    self._tell(self._progress(number))
            self._mend()
            self._fall_idle()

    def _progress(self, batches: int) -> str:
        size = self.sizes[-1]
        kinds = ", ".join(f"{kind} {count}" for kind, count in size.records.items())
        return (
            f"{batches * BATCH} jobs, daemon {size.rss / 2**20:.1f} MiB,"
            f" records of {size.bytes} bytes: {kinds}"
        )

    def _deal(self) -> list[str]:
        """Return what happens after each batch."""
        one_daemons = round(self._batches * (1 - _NO_DAEMON_KILLED_AFTER))
        halves: list[list[str]] = []
        for count in (self._batches - one_daemons, one_daemons):
            cards = [
                card
                for card, share in _DECK.items()
                for _ in range(max(1, round(share * count / 100)))
                if card != "kill_daemon" or not halves
            ]
            self._random.shuffle(cards)
            halves.append(cards)
        return halves[0] + halves[1]

    # What happens.

    def _nothing(self) -> None:
        pass

    def _kill_follower(self) -> None:
        hosts = sorted(self.site.followers())
        if hosts:
            host = self._random.choice(hosts)
            began = time.time()
            # It may end just now, with its burst.
            if self.site.kill_follower(host):
                self.killings.append(Killing(host, began))

    def _fault(self) -> None:
        """Have one provider fail in one way, and no other."""
        self._mend()
        method = self._random.choice(faulty.METHODS)
        fault = self._random.choice(faulty.FAULTS)
        name = self._random.choice(PROVIDERS)
        # Whole at once, as the daemon may read it at any moment.
        part = self._faults / "part"
        part.write_text(json.dumps({method: fault}))
        part.rename(self._faults / f"{name}.json")

    def _mend(self) -> None:
        """End the faults, as a person would."""
        self._undrain()
        for name in PROVIDERS:
            file = self._faults / f"{name}.json"
            if file.exists():
                file.unlink()
                done = self._command("enable", name)
                # It may have gone on by itself, or not have met its fault.
                assert done.status == 0 or "no failures to" in done.stderr, done

    def _command(self, *words: str) -> CommandResult:
        """Run a command, again until the daemon is back at a lead that was killed."""
        found: list[CommandResult] = []

        def is_served() -> bool:
            found[:] = [self.site.cli.run(*words)]
            return "no daemon serves" not in found[0].stderr

        wait_until(is_served, lambda: f"the daemon: {found}", pause=0.2)
        return found[0]

    def _reload(self) -> None:
        self._write()
        done = self._command("reload")
        assert done.status == 0, done

    def _reload_bad_file(self) -> None:
        good = self.site.cli.config.read_text()
        self.site.cli.config.write_text(good.replace("[limits]", "[limit]"))
        done = self._command("reload")
        self.site.cli.config.write_text(good)
        assert done.status == 1, done
        assert "limit: no such key" in done.stderr, done

    def _kill_daemon(self) -> None:
        assert self._daemon is not None
        self._daemon.end(signal.SIGKILL)
        self.killings.append(Killing("daemon", time.time()))
        self._start_daemon()

    def _kill_lead(self) -> None:
        instance = self.site.instance
        self.killings.append(Killing("lead", time.time()))
        instance.kill()
        # It would leave by itself once the new lead knows nothing of it.
        instance.kill_follower("lead-1")
        # It replays all jobs that it ever had, each in some 10 ms.
        instance.start()
        instance.start_follower("lead-1")
        self.repaired += self.jobs.repair()
        self.killings.append(Killing("lead", time.time()))

    # What it is made of.

    def _write(self) -> None:
        """Write settings that differ each time in what a person may tune."""
        some = self._random
        options = {
            **self.site.cli.options,
            "type": faulty.TYPE,
            "faults": str(self._faults),
        }
        self.site.cli.write(
            providers=dict.fromkeys(PROVIDERS, options),
            daemon={"cadence": "1s"},
            deadlines={
                "idle": some.choice(["0.5s", "1s", "2s"]),
                "rejoin": "2s",
                "join": "5m",
            },
            limits={
                "cooldown": "1s",
                "max_nodes": some.choice([6, 8, 0]),
                "max_bursts": some.choice([2, 4, 0]),
            },
            intake={"local_wait": some.choice(["0.5s", "2s"])},
        )

    def _start_daemon(self) -> None:
        daemon = DaemonProcess(self.site.cli)
        self._daemon = daemon
        self._unfreed = 0
        self.one_daemons = []
        self._stack.callback(_end, daemon)
        # Not until it knows offers: a provider may be failing.
        daemon.says(" serves ")

    def _wait_for_jobs(self, most: int) -> None:
        """Wait until no more than so many jobs have not ended."""
        began = time.monotonic()
        ends = began + HANG_S
        while len(active := self._active()) > most:
            self._check_daemon()
            if time.monotonic() > began + FAULT_S:
                # A burst waits for its provider for its `provision`.
                self._mend()
            if time.monotonic() > began + NOWHERE_S:
                self.repaired += self.jobs.cancel_those_nowhere()
            assert time.monotonic() < ends, self._explain(active)
            time.sleep(_LOOK_S)

    def _active(self) -> list[int]:
        return self.jobs.active()

    def _fall_idle(self) -> None:
        self._wait_for_jobs(0)
        self._undrain()
        wait_until(lambda: not self._live(), lambda: f"an end of {self._live()}")
        self.sizes.append(self._size())
        self.one_daemons.append(self.sizes[-1])

    def _undrain(self) -> None:
        """Take back what Flux drained for `cancel_those_nowhere`, as a person would."""
        status = self.site.instance.rpc("resource.status", {})
        for ranks, drain in status["drain"].items():
            # The node is gone, with all that was on it.
            if str(drain["reason"]).startswith("unkillable user processes"):
                self.site.flux("resource", "undrain", ranks)

    def _live(self) -> list[Any]:
        self._check_daemon()
        return [row for row in self.site.bursts() if row["state"] != "inactive"]

    def _check_daemon(self) -> None:
        """Fail if the daemon has ended; do what it asks of a person."""
        assert self._daemon is not None
        status = self._daemon.process.poll()
        log = self._daemon.log
        assert status is None, f"the daemon ended with {status}: {log[-4000:]}"
        if log.count(UNFREED) > self._unfreed:
            self._unfreed += 1
            self.site.instance.reload_scheduler()
            self.reloaded += 1

    def _explain(self, active: list[int]) -> str:
        assert self._daemon is not None
        told = [f"{len(active)} jobs wait", f"{self.killings}"]
        told += [self.site.explain(str(job)) for job in active[:3]]
        form = "{id.f58} {state} {urgency} {priority} {ncores} {ranks} {nodelist}"
        told.append(self.site.flux("jobs", "-no", form)[-4000:])
        told.append(self.site.flux("resource", "list"))
        told.append(self.site.flux("resource", "drain"))
        # Ranks on which jobs still run for one of them are not deleted.
        for topic in ("job-manager.resource-status", "sched.resource-status"):
            told.append(f"{topic}: {self.site.instance.rpc(topic, {})}"[:4000])
        told.append(self.site.instance.log("lead-0")[-4000:])
        told.append(self.site.cli.run("status").stdout[-4000:])
        told.append(self._daemon.log[-4000:])
        return "\n".join(told)

    def _size(self) -> Size:
        assert self._daemon is not None
        pid = self._daemon.process.pid
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        lengths = self.site.record_sizes()
        return Size(
            rss=pages * 4096,
            records=dict(sorted(Counter(map(_kind, lengths)).items())),
            bytes=sum(lengths.values()),
            largest=max(lengths.values()),
        )
