# SPDX-License-Identifier: MIT
"""A daemon by whose rules jobs wait for own nodes, and users who want a burst."""

import logging
from pathlib import Path
from typing import Any

import pytest

from burst.core.plan.estimate import StartEstimate
from burst.errors import BurstError, ConfigError, Denied
from burst.model.active_job import ActiveJob
from burst.model.decision import Decision
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from burst.model.reason import Reason
from burst.runtime import service_answers
from burst.runtime.engine_config import EngineConfig, find_userids, make_config
from burst.runtime.policy_check import check_policy
from burst.testing import FakeProvider
from tests.builders import T0, but, identity, job, settings, view, whole, world
from tests.runtime.asking import GUEST, Asking

# Nothing is forecast here, and nothing decided without.
FRUGAL = {"plan": {"worth": 0.1}}


def make_busy() -> Asking:
    asking = Asking(**FRUGAL)
    asking.sim.lead.submit(whole(2))
    asking.tick()
    return asking


def test_only_its_user_and_the_owner_request_a_burst_for_a_job() -> None:
    asking = make_busy()
    # Else the other job, which is not held, would start on the nodes of the first.
    asking.sim.joins = False
    mine = asking.sim.lead.submit(whole(2), userid=GUEST)
    other = asking.sim.lead.submit(whole(2))
    asking.tick()
    assert asking.ask("request-job", guest=True, id=format_f58(mine)) == {
        "id": format_f58(mine)
    }
    with pytest.raises(Denied, match="that is not a job of yours"):
        asking.ask("request-job", guest=True, id=format_f58(other))
    asking.ask("request-job", id=format_f58(other))
    with pytest.raises(BurstError, match="burst knows no job"):
        asking.ask("request-job", id=format_f58(JobId(999)))


def test_rules_are_told_where_the_lead_cannot_be_read() -> None:
    snapshot = make_busy().sim.engine.snapshot
    silent = but(snapshot.world, lead=None, trouble="no answer")
    snapshot = but(snapshot, world=silent)
    told = check_policy(snapshot, settings(**FRUGAL))
    assert (told["jobs"], told["trouble"]) == ([], "no answer")
    assert [rule["name"] for rule in told["rules"]] == ["default"]


def test_explain_compares_by_the_last_forecast() -> None:
    """The tick leaves a refusal as it is while a new forecast changes nothing."""
    asking = make_busy()
    snapshot = asking.sim.engine.snapshot
    one = job(9, whole(2), duration=3600.0)
    soon = StartEstimate(expected=T0 + 60, earliest=T0 + 60, latest=T0 + 60)
    frugal = settings(**FRUGAL)
    seen = but(world(view(one)), forecasts={one.id: soon})
    changes = {"world": seen, "settings": frugal, "now": T0}
    refused = Decision(Reason.NOT_WORTH, {"comparison": "as it was"})
    snapshot = but(snapshot, decisions={one.id: refused}, **changes)
    told = service_answers.explain(snapshot, format_f58(one.id))
    assert told["why"].startswith("starts on own nodes about ")
    assert "which rule default does not pay: it saves" in told["why"]
    later = StartEstimate(expected=T0 + 9e9, earliest=T0, latest=T0 + 9e9)
    seen = but(seen, forecasts={one.id: later})
    snapshot = but(snapshot, world=seen)
    # The next tick makes a burst for it.
    assert service_answers.explain(snapshot, format_f58(one.id))["why"] == "as it was"


def test_a_job_that_is_not_burstable_may_be_allowed_on_lent_nodes() -> None:
    allowing = settings(intake={"any_job": True})
    snapshot = but(make_busy().sim.engine.snapshot, settings=allowing)
    waits = ActiveJob(id=JobId(8), userid=7, name="", state=JobState.SCHED, priority=16)
    told = service_answers.explain(
        snapshot, format_f58(waits.id), None, lambda _: waits
    )
    assert told["why"].endswith("; it may also start on lent nodes that are up")


def test_users_are_looked_up_and_doubts_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert find_userids(["root", "nobody-of-this-name"]) == {"root": 0}
    found = settings(policy=[{"match": {"user": ["root", "nobody-of-this-name"]}}])
    caplog.set_level(logging.WARNING, "burst")
    config = make_config(lambda *_: {}, identity(), found)
    assert config.userids == {"root": 0}
    assert "policy-1 is for user nobody-of-this-name" in caplog.text


def make_providers(*, found: object = (), place: object = "") -> EngineConfig:
    """Make two providers; `far` says that it is there, and that its followers have
    these directories."""

    class Pods(FakeProvider):
        def directories(self) -> Any:
            return found

        def place(self) -> Any:
            return place

    made = {"far": Pods("far"), "near": FakeProvider("near")}
    tables = {name: {"type": "fake"} for name in made}
    return make_config(lambda *_: made, identity(), settings(providers=tables))


def test_directories_of_followers_are_asked_of_providers_that_say_them() -> None:
    config = make_providers(found=iter(["/scratch", "/results"]))
    assert config.directories == {"far": ("/scratch", "/results")}


@pytest.mark.parametrize(
    "found", ["/x", ["data"], [1], [Path("/x")], ["/x\udc80"], None]
)
def test_directories_are_absolute_paths_as_text(found: object) -> None:
    """`flux submit --burst` reads them as any user, from a list in JSON."""
    with pytest.raises(ConfigError, match=r"providers\.far: directories\(\) failed: "):
        make_providers(found=found)


def test_a_place_is_text_that_can_be_stored() -> None:
    assert make_providers(place="/x\udc80").places["far"] == "fake /x?"
    what = r"providers\.far: place\(\) failed: TypeError: it returned None, not text"
    with pytest.raises(ConfigError, match=what):
        make_providers(place=None)


def test_a_policy_is_checked_by_the_jobs_that_wait() -> None:
    asking = make_busy()
    lead = asking.sim.lead
    small, large = lead.submit(whole(1)), lead.submit(whole(3))
    asking.tick()
    found = asking.ask("policy")
    (rule,) = found["rules"]
    assert (rule["name"], rule["worth"], rule["takes"]) == ("default", 0.1, 2)
    tables = {
        "policy": [
            {"name": "large", "match": {"nodes": ">2"}, "worth": 0},
            {"name": "never", "match": {"queue": "gpu"}},
        ]
    }
    found = asking.ask("policy", tables=tables, where="new.toml")
    taken = {row["id"]: (row["rule"], row["verdict"]) for row in found["jobs"]}
    # That file has no worth: it is 0.
    assert taken == {
        format_f58(small): ("default", "proposed"),
        format_f58(large): ("large", "coming"),
    }
    assert [row["takes"] for row in found["rules"]] == [1, 0, 1]
    assert found["warnings"] == [
        "policy never is for queue gpu; the lead's queues are: none"
    ]
    with pytest.raises(BurstError, match=r"new.toml: policy 1: worht: no such key"):
        asking.ask("policy", tables={"policy": [{"worht": 1}]}, where="new.toml")
    with pytest.raises(Denied, match="only the instance owner"):
        asking.ask("policy", guest=True)
