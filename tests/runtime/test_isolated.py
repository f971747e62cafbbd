# SPDX-License-Identifier: MIT
"""What the service says of isolated bursts, and is asked for."""

import pytest

from burst.errors import BurstError, SpecRefused
from burst.model.burst import State
from burst.model.jobid import format_f58
from burst.model.request import BurstPreferences
from tests.builders import whole
from tests.runtime.asking import GUEST, Asking

BOTH = ("joined", "isolated")


def isolated_job(asking):
    """Have a job run in an isolated burst to its end; return its id."""
    wish = BurstPreferences(mode="isolated", wait=0)
    job = asking.sim.lead.submit(whole(3), preferences=wish, userid=GUEST)
    sim = asking.sim
    sim.until(lambda: bool(sim.bursts) and sim.bursts[-1].state is State.INACTIVE)
    return format_f58(job)


def test_the_output_of_an_isolated_burst_is_its_users_too():
    asking = Asking(modes=BOTH)
    job = isolated_job(asking)
    name = asking.sim.burst.id
    expected = {"burst": name, "exit_status": 0, "text": "done\n"}
    assert asking.ask("output", id=job) == expected
    assert asking.ask("output", guest=True, id=name) == expected


def test_a_burst_that_was_taken_down_has_no_output():
    asking = Asking(modes=BOTH)
    asking.sim.provider.ends_with = None
    wanted = {"kind": "command", "command": ["true"]}
    (name,) = asking.ask("request", nodes=2, isolated=wanted)["bursts"]
    asking.ask("down", burst=name)
    asking.sim.tick()
    with pytest.raises(BurstError, match="left no output") as ended:
        asking.ask("output", id=name)
    assert ended.value.advice == f"burst explain {name} says why it ended without one"


def test_the_output_of_another_is_not_told():
    asking = Asking(modes=BOTH)
    with pytest.raises(BurstError, match=r"at `\$.isolated.kind`"):
        asking.ask("request", nodes=2, isolated={"kind": "party"})
    wanted = {"kind": "command", "command": ["true"]}
    (name,) = asking.ask("request", nodes=2, isolated=wanted)["bursts"]
    with pytest.raises(BurstError, match="left no output") as early:
        asking.ask("output", id=name)
    assert "once what runs there has ended" in early.value.advice
    with pytest.raises(BurstError, match="no isolated burst has that id"):
        asking.ask("output", guest=True, id=name)
    with pytest.raises(BurstError, match="no isolated burst has that id"):
        asking.ask("output", id="burst-0-abcdef")


def test_each_kind_of_program_is_asked_for():
    asking = Asking(modes=BOTH)
    asking.sim.provider.ends_with = None
    for kind in ("interactive", "service", "command", "batch"):
        command = ["hostname"] * (kind in ("command", "batch"))
        wanted = {"kind": kind, "command": command}
        asking.ask("request", nodes=1, isolated=wanted)
    asking.sim.tick(2)
    made = [burst.spec.program for burst in asking.sim.cloud.bursts.values()]
    programs = [program for program in made if program]
    kinds = [program.kind for program in programs]
    assert kinds == ["interactive", "service", "job", "job"]
    assert "hostname" in programs[2].jobspec
    assert "submit hostname" in programs[3].jobspec


def test_a_job_whose_isolated_burst_is_refused_fails_and_nobody_else_suffers():
    asking = Asking(modes=BOTH)
    sim = asking.sim
    sim.provider.next_provision_error = SpecRefused("the jobspec is 2 MB", "shorten it")
    wish = BurstPreferences(mode="isolated", wait=0)
    job = sim.lead.submit(whole(3), preferences=wish, userid=GUEST)
    sim.until(lambda: bool(sim.lead.log))

    ((verb, failed, reason),) = sim.lead.log
    assert (verb, failed) == ("fail", job)
    why = "spec: the jobspec is 2 MB; shorten it"
    assert reason.endswith(f"refuses to make the burst: {why}")
    assert not sim.records.health
    sim.run_job(whole(3))
    assert sim.cloud.begun == []
