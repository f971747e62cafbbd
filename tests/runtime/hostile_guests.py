# SPDX-License-Identifier: MIT
"""Users who do all they can at a simulated daemon, and what has to hold meanwhile.

Time is the simulation's. Each step is a call of the service, legal or not, a job that
is submitted, changed or ends, or time that passes. After each it is checked that nobody
was told of another's jobs or bursts, that nothing of another's was changed, and that
limits hold; the owner asks now and then, and is answered.
"""

import json
import random
import re
from typing import Any

from burst.errors import BurstError, CallsTooOften
from burst.model.burst import State
from burst.model.hold import HELD_BY_US, HoldState
from burst.model.jobid import EXAMPLE, format_f58
from burst.model.lead import JobState
from burst.runtime.call_limits import CALL_RATE, CallLimits
from tests.builders import whole
from tests.runtime.asking import Asking

GUESTS = (101, 102, 103)
OWNER = 0
MOST_REQUESTED, MOST_OF_USER, MOST = 3, 4, 8
METHODS = (
    *("ping", "intake", "status", "explain", "cost", "output", "report", "release"),
    *("request-job", "plan", "policy", "request", "down", "resize", "gc", "enable"),
    *(
        "reload",
        "tagged",
        "ensemble-up",
        "ensemble-down",
        "ensemble-status",
        "ensemble-submit",
    ),
    *("ensemble-resize", "holder", "nosuch", "", "status.x", "ƒ", "x" * 9999),
)
_OF_OWNER = frozenset(METHODS[METHODS.index("plan") :]) - {"request", "down", "holder"}
_ID = re.compile(r"ƒ[1-9A-HJ-NP-Za-km-z]+")
_BURST = re.compile(r"burst-\d-[0-9a-f]{6}")
_STEPS_OF_TIME = (1.0, 1.0, 5.0, 60.0, 600.0, 3600.0, 7200.0)
_OVER = {JobState.CLEANUP, JobState.INACTIVE}
_SIZES = {"grow", "grown", "shrink", "shrunk"}


class HostileGuests:
    """A simulated daemon, its owner, and guests; `seed` decides all that they do."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.asking = Asking(
            guests={"request_nodes": MOST_REQUESTED},
            limits={"max_nodes_per_user": MOST_OF_USER, "max_nodes": MOST},
            deadlines={"idle": "20m"},
        )
        self.sim = self.asking.sim
        self.limits = CallLimits(clock=lambda: self.sim.now)
        self.answered = self.refused = self.floods = self.requested = 0
        self._released: set[int] = set()
        self._wanted: set[int] = set()

    def step(self) -> None:
        """Do one thing at random, and check what has to hold."""
        deeds = (self.call, self.call, self.call, self.submit, self.change, self.wait)
        self.random.choice(deeds)()
        self.check_limits()

    def call(self) -> None:
        """A guest calls the service, in earnest or not."""
        userid = self.random.choice(GUESTS)
        method = self.random.choice(METHODS)
        if self.random.random() < 0.02:
            self.flood(userid)
            return
        payload = self.payload()
        if self.random.random() < 0.15:
            # What he may do, so that what he may not is tried beside it.
            method, payload = "request", {"nodes": self.random.randint(1, 3)}
        if method in ("release", "request-job"):
            self._note_wishes(userid, method, payload)
        self.send(userid, method, payload)

    def send(self, userid: int, method: str, payload: dict[str, Any]) -> None:
        """Call as a guest, and check that what he is told is his."""
        before = {name: each.state for name, each in self._records.bursts.items()}
        try:
            told = self.asking.send(userid, method, payload)
        except BurstError as error:
            self.refused += 1
            text = str(error)
        else:
            assert method not in _OF_OWNER, (method, payload, told)
            self.answered += 1
            self.requested += method == "request"
            text = json.dumps(told, ensure_ascii=False)
        self.check_told(userid, text, (method, payload))
        self.check_untouched(userid, before)

    def flood(self, userid: int) -> None:
        """Call more often than he may; others and the owner are taken as ever."""
        taken = 0
        try:
            while taken < 1000:
                self.limits.admit("explain", userid, False)
                taken += 1
        except CallsTooOften:
            self.floods += 1
        assert taken <= CALL_RATE.at_once
        self.limits.admit("status", OWNER, True)

    def submit(self) -> None:
        """Somebody submits a job, or an array of them."""
        userid = self.random.choice((*GUESTS, OWNER))
        count = self.random.choice((1, 1, 1, 2, 40))
        live = [j for j in self.sim.lead.jobs.values() if j.state not in _OVER]
        if len(live) < 80:
            for _ in range(count):
                self.sim.lead.submit(whole(self.random.randint(1, 5)), userid=userid)

    def change(self) -> None:
        """A job that runs ends, or a user cancels or holds one that waits."""
        live = [j for j in self.sim.lead.jobs.values() if j.state not in _OVER]
        for job in self.random.sample(live, min(len(live), 3)):
            if job.state is JobState.RUN or self.random.random() < 0.3:
                self.sim.lead.finish(job.id, "completed" if job.ranks else "canceled")

    def wait(self) -> None:
        """Let time pass."""
        self.sim.tick(seconds=self.random.choice(_STEPS_OF_TIME))
        assert self.asking.send(OWNER, "status", {"jobs": 5})["daemon"]

    def payload(self) -> dict[str, Any]:
        """What a request may say: what it should, what others have, and nonsense."""
        pick = self.random.choice
        jobs = [format_f58(job) for job in self.sim.lead.jobs] or ["ƒ1"]
        bursts = [burst.id for burst in self.sim.bursts] or ["burst-0-000000"]
        numbers, texts = (-1, 2**63, 2**70, 1.5), ("", "x" * 5000, "ƒ\x00\n'\"")
        odd: tuple[Any, ...] = (None, [], {}, True, *numbers, *texts)
        name = pick((pick(jobs), pick(bursts), pick(odd)))
        fields = {
            "id": name,
            "ids": pick(([pick(jobs), pick(jobs)], jobs, [name], name)),
            "burst": pick((*bursts, name)),
            "nodes": pick((1, 1, 2, 3, 4, -1, 0, 2**31, name)),
            "provider": pick(("", "", "local", "nosuch", name)),
            "slot": pick(("", "", "", "burst-0-[0-3]", name)),
            "isolated": pick((None, None, {"kind": "command", "command": ["id"]})),
            "all": pick((True, False, name)),
            "force": pick((True, False)),
            "note": pick(("", "x\ny", name)),
            "userid": pick((OWNER, *GUESTS)),
            "owner": True,
            "rolemask": 1,
            "jobs": pick((0, 5, 1000, -1, name)),
            "by": pick(("", "job", "user", name)),
            "since": pick(("", "2026-01-01", "0000-00-00", name)),
            "tables": pick(({}, {"policy": [{}]}, name)),
            "name": name,
        }
        kept = self.random.sample(sorted(fields), self.random.randint(0, len(fields)))
        return {key: fields[key] for key in kept}

    @property
    def _records(self) -> Any:
        return self.sim.records

    def _owners(self, burst: Any) -> set[int]:
        users = set(burst.lease.userids)
        known = (*burst.times, *(job for job, _ in burst.sums.recent), *burst.jobs)
        return users | {self.sim.lead.jobs[job].userid for job in known}

    def _note_wishes(self, userid: int, method: str, payload: dict[str, Any]) -> None:
        jobs = [j.id for j in self.sim.lead.jobs.values() if j.userid == userid]
        (self._released if method == "release" else self._wanted).update(jobs)

    def check_told(self, userid: int, text: str, asked: object) -> None:
        """No answer, and no error, has an id of another's job or burst."""
        jobs = {format_f58(j.id): j.userid for j in self.sim.lead.jobs.values()}
        for found in set(_ID.findall(text)) - {EXAMPLE}:
            assert jobs.get(found) == userid, (found, asked, text)
        for found in _BURST.findall(text):
            burst = self._records.bursts.get(found)
            assert burst is None or userid in self._owners(burst), (found, asked, text)
        assert "Traceback" not in text
        assert "internal error" not in text

    def check_untouched(self, userid: int, before: dict[str, State]) -> None:
        """Nothing of another user's was changed by what a guest asked."""
        for burst in self.sim.bursts:
            ended = [e for e in burst.events if "by its user" in str(e.context)]
            if ended and before.get(burst.id) not in (State.DRAIN, State.REAP):
                owner = burst.lease.requester
                assert owner == userid or before.get(burst.id) == burst.state
        for job, hold in self._records.holds.items():
            if hold.state is HoldState.TAKEN_BACK:
                assert job in self._released, f"{job} was released"
            if hold.requested:
                assert job in self._wanted, f"{job} was requested"

    def check_limits(self) -> None:
        """No user has more nodes than he may, nor have all of them together."""
        live = self._records.live
        assert sum(burst.lease.nodes for burst in live) <= MOST
        for userid in GUESTS:
            requested = [b for b in live if b.lease.requester == userid]
            # Others may have grown for a job.
            new = [b for b in requested if not _SIZES & {e.name for e in b.events}]
            assert sum(b.lease.nodes for b in new) <= MOST_REQUESTED
            theirs = [b.lease.nodes for b in live if userid in b.lease.userids]
            assert sum(theirs) <= MOST_OF_USER
        for burst in live:
            if burst.lease.requester is not None:
                # Those that have started may be there by the fake lead, not by us.
                given = burst.jobs - burst.started
                users = {self.sim.lead.jobs[job].userid for job in given}
                assert users <= {burst.lease.requester}

    def end(self) -> None:
        """End all jobs; then nothing is left, of whomever."""
        for job in list(self.sim.lead.jobs.values()):
            if job.state not in _OVER:
                self.sim.lead.finish(job.id, "canceled")
        self.sim.tick(3)
        while idle := [b for b in self._records.live if b.state is State.ONLINE]:
            self.asking.send(OWNER, "down", {"burst": idle[0].id})
        self.sim.until(lambda: not self._records.live, ticks=300, seconds=5.0)
        self.sim.tick(3)
        assert not list(self.sim.cloud.followers())
        assert not self.sim.lead.drained
        held = [h for h in self._records.holds.values() if h.state in HELD_BY_US]
        assert not held
