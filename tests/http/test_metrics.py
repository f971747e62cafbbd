# SPDX-License-Identifier: MIT
"""Metrics against what the store says, through whole lives of bursts."""

import re
from collections import Counter
from typing import NoReturn

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from burst.core.forecast.grades import ALL, Grade
from burst.core.money.periods import sum_of
from burst.core.orphans import Orphan
from burst.core.provider_health import FailureRecord, Health
from burst.http.metrics.catalog import CATALOG, PREFIX
from burst.http.metrics.collector import LIVE_STATES, DaemonCollector
from burst.lead import ServiceRequest
from burst.model.burst import BurstId, State
from burst.model.jobid import JobId
from burst.runtime.daemon_state import DaemonState, Served
from burst.runtime.forecast_pass import Forecasts, Judged, Line
from burst.runtime.read_records import read_records
from burst.runtime.side_threads import SideThreads
from burst.runtime.tally import Tally
from tests.builders import but, whole
from tests.fakes import FakeLead
from tests.sim import Sim

Found = dict[tuple[str, ...], float]


def no_answer(request: ServiceRequest) -> NoReturn:
    """Stand for a service that these tests do not ask."""
    raise AssertionError(request)


class Watched(Sim):
    """A simulation whose metrics are read as Prometheus would."""

    def __init__(self, **tables: object) -> None:
        self.tally = Tally()
        self.shown = DaemonState(self.tally)
        super().__init__(**tables)

    def boot(self):
        self.beside = SideThreads(tally=self.tally)
        super().boot()
        self.shown.serve(Served(lambda: self.engine.snapshot, {}, no_answer))

    def restart(self) -> None:
        """Another process: only the store remembers."""
        self.tally = Tally()
        self.shown = DaemonState(self.tally)
        self.boot()

    def text(self) -> str:
        registry = CollectorRegistry()
        registry.register(DaemonCollector(self.shown))
        return generate_latest(registry).decode()

    def read(self, name: str) -> Found:
        """Return the values of a metric, by its labels' values as it declares them."""
        family = re.sub(r"_(count|sum|bucket)$", "", name)
        keys = (*CATALOG[family].labels, "le")
        # Reading all of a text takes as long as a hundred ticks.
        lines = (li for li in self.text().splitlines() if PREFIX + family in li)
        text = "".join(f"{line}\n" for line in lines)
        return {
            tuple(sample.labels[key] for key in keys if key in sample.labels): (
                sample.value
            )
            for family in parse_text(text)
            for sample in family.samples
            if sample.name == PREFIX + name
        }

    def one(self, name: str, *labels: str) -> float:
        return self.read(name)[labels]


def test_one_burst_from_its_start_to_its_end() -> None:
    sim = Watched(deadlines={"idle": "5s"})
    job = sim.lead.submit(whole(3))
    sim.until(sim.in_state(State.PROVISION))
    assert sim.one("bursts", "local", "provision") == 1
    assert sim.one("nodes_provisioned", "local") == 3
    assert sim.one("nodes_up", "local") == 0
    sim.until(sim.in_state(State.ONLINE))
    assert sim.one("nodes_up", "local") == 3
    assert sum(sim.read("bursts").values()) == 1
    sim.until(lambda: sim.lead.jobs[job].ranks)
    sim.tick()
    # It may have own nodes, too.
    taken = sim.lead.jobs[job].ranks & frozenset(sim.burst.lease.ranks)
    assert taken
    assert sim.one("nodes_idle", "local") == 3 - len(taken)
    sim.lead.finish(job)
    sim.tick(2)
    assert sim.one("nodes_idle", "local") == 3
    sim.until(sim.in_state(State.INACTIVE))
    assert sum(sim.read("bursts").values()) == 0
    offer = sim.burst.lease.offer
    assert sim.one("bursts_started_total", "local", offer) == 1
    assert sim.one("bursts_ended_total", "local", offer, "completed") == 1
    assert sum(sim.read("bursts_ended_total").values()) == 1
    # Stages are as long as the events on record say.
    at = {event.name: event.timestamp for event in sim.burst.events}
    for stage, begins, ends in (
        ("provision", "provision-start", "provision-finish"),
        ("join", "provision-finish", "online"),
        ("online", "provision-start", "online"),
        ("drain", "drain", "drained"),
        ("reap", "drained", "reaped"),
    ):
        assert sim.one("stage_duration_seconds_count", "local", stage) == 1, stage
        took = sim.one("stage_duration_seconds_sum", "local", stage)
        assert took == pytest.approx(at[ends] - at[begins]), stage
    assert sim.one("stage_duration_seconds_count", "local", "end") == 0


@pytest.mark.no_cover
def test_what_is_live_agrees_with_the_store_at_any_tick() -> None:
    """Whatever jobs come and go: gauges are a count of the records in the store.

    Each third tick is looked at, as a look costs more than a tick.
    """
    sim = Watched(deadlines={"idle": "3s"}, prices={"local.nodes": 2.5})
    for tick in range(60):
        if tick % 7 == 0:
            sim.lead.submit(whole(3 + tick % 2))
        running = [j for j in sim.lead.jobs.values() if j.ranks and not j.result]
        if tick % 5 == 4 and running:
            sim.lead.finish(running[0].id)
        sim.tick()
        if tick % 3:
            continue
        records = read_records(sim.lead.disk.load(), sim.now)
        states = Counter(b.state.value for b in records.live)
        shown = {labels[1]: n for labels, n in sim.read("bursts").items() if n}
        assert shown == states
        gone = sum(not burst.live for burst in records.bursts.values())
        assert sum(sim.read("bursts_ended_total").values()) == gone
        begun = sum(
            any(event.name == "provision-start" for event in burst.events)
            for burst in records.bursts.values()
        )
        assert sum(sim.read("bursts_started_total").values()) == begun
        settled = sum_of(period.total for period in records.periods.values())
        told = sum(sim.read("money_settled_total").values())
        assert told == pytest.approx(settled.total / 1e6)
        assert sim.one("money_wasted_total") == pytest.approx(settled.wasted / 1e6)
        reserved = sum(entry.reserved for entry in records.entries.values())
        assert sim.one("money_reserved", "local") == pytest.approx(reserved / 1e6)
        leased = sum(len({b.lease.slot}) for b in records.live)
        assert (sim.one("slots", "leased") > 0) == (leased > 0)
    assert gone >= 2


def test_after_a_restart_nothing_is_counted_twice_and_money_is_what_it_was() -> None:
    sim = Watched(deadlines={"idle": "2s"}, prices={"local.nodes": 2.5})
    job = sim.lead.submit(whole(3))
    sim.until(lambda: sim.bursts and sim.lead.jobs[job].ranks)
    sim.end_job(job)
    money = sim.read("money_settled_total")
    assert sum(money.values()) > 0
    sim.restart()
    sim.tick(3)
    assert sim.read("money_settled_total") == money
    assert sum(sim.read("bursts_started_total").values()) == 0
    assert sum(sim.read("bursts_ended_total").values()) == 0
    # What comes next is counted, from 0.
    sim.lead.submit(whole(4))
    sim.until(lambda: any(b.state is State.ONLINE for b in sim.bursts))
    assert sum(sim.read("bursts_started_total").values()) == 1


def test_what_the_store_refused_is_counted_once_it_took_it() -> None:
    sim = Watched()
    sim.tick()
    sim.lead.submit(whole(3))
    sim.lead.disk.full = True
    for _ in range(3):
        sim.tick()
    assert sum(sim.read("bursts_started_total").values()) == 0
    # The lead is there: its alert is not the one for this.
    assert sim.one("lead_up") == 1
    told = sim.shown.why_not_ready()
    assert "writing to the store has failed since " in told
    assert ": no space left; make room" in told
    sim.lead.disk.full = False
    sim.until(sim.in_state(State.ONLINE))
    assert sum(sim.read("bursts_started_total").values()) == 1


def test_jobs_that_wait_are_told_by_reason_and_queue_never_by_their_ids() -> None:
    sim = Watched(limits={"max_nodes": 1})
    for _ in range(3):
        sim.lead.submit(whole(3), queue="batch")
    sim.lead.submit(whole(9), queue="debug")
    sim.tick(3)
    waiting = sim.read("pending_jobs")
    assert sum(waiting.values()) == 4
    by_queue: Counter[str] = Counter()
    for (_, queue), jobs in waiting.items():
        by_queue[queue] += int(jobs)
    assert by_queue == {"batch": 3, "debug": 1}
    assert sim.one("held_jobs") == len(sim.records.holds)


def test_calls_of_providers_are_counted_with_their_errors() -> None:
    sim = Watched()
    sim.tick(3)
    calls = sim.one("provider_call_duration_seconds_count", "local", "observe")
    assert calls >= 1
    assert sim.one("provider_call_duration_seconds_count", "local", "reap") == 0
    before = sim.read("provider_call_errors_total")
    assert {kind for _, _, kind in before} == {
        *("capacity", "transient", "spec", "refused", "unexpected")
    }
    assert not any(before.values())
    sim.provider.next_observe_error = ValueError("a bug")
    sim.tick(30)
    kinds = sim.read("provider_call_errors_total")
    assert kinds == before | {("local", "observe", "unexpected"): 1}


def changed(sim: Watched, **parts: object) -> None:
    """Show metrics of the last snapshot with other parts."""
    snapshot = but(sim.engine.snapshot, **parts)
    sim.shown.serve(Served(lambda: snapshot, {}, no_answer))


def test_health_of_providers() -> None:
    sim = Watched()
    sim.tick(3)
    for name in ("breaker_open", "disabled"):
        assert sim.one(f"provider_{name}", "local") == 0
    assert sim.one("provider_up", "local") == 1
    records, now = sim.records, sim.engine.snapshot.now
    ill = Health(
        until=now + 5,
        rows={
            "method/offers": FailureRecord(why="quota"),
            "offer/node": FailureRecord(1, now + 9),
            "unusable/other": FailureRecord(1, now - 9),
        },
    )
    changed(sim, records=but(records, health={"local": ill}))
    for name in ("breaker_open", "disabled"):
        assert sim.one(f"provider_{name}", "local") == 1
    assert sim.one("offers_set_aside", "local") == 1


def test_orphans_unreadable_records_and_grades() -> None:
    sim = Watched()
    sim.tick(2)
    assert sim.one("orphans", "local") == 0
    records = but(sim.records, unreadable={"burst/a": "x", "job/a/1": "y"})
    line = Line(frozenset(), frozenset(), ())
    forecasts = Forecasts(
        at=1.0,
        starts={},
        judged=Judged({}, 1.0, line),
        run_times={},
        pending=(),
        grades={ALL: Grade(40, 30, 36), "user/7": Grade(5, 0, 0)},
    )
    orphan = Orphan("local", BurstId("burst-0-zzz"), "no record of it", ())
    changed(sim, records=records, orphans=(orphan,), forecasts=forecasts)
    assert sim.one("orphans", "local") == 1
    assert sim.one("unreadable_records") == 2
    assert sim.one("forecast_near_ratio") == 0.75
    assert sim.one("forecast_inside_ratio") == 0.9
    assert "user/7" not in sim.text()
    changed(sim, forecasts=but(forecasts, grades={}))
    assert sim.read("forecast_near_ratio") == {}


def test_errors_of_forecasts_are_counted_as_they_are_learnt() -> None:
    sim = Watched()
    sim.tally.forecast_error(-30.0)
    sim.tally.forecast_error(5000.0)
    assert sim.one("forecast_error_seconds_count") == 2
    assert sim.one("forecast_error_seconds_sum") == 5030
    assert sim.one("forecast_error_seconds_bucket", "30") == 1
    assert sim.one("forecast_error_seconds_bucket", "3600") == 1
    assert sim.one("forecast_error_seconds_bucket", "+Inf") == 2


def test_budgets_are_told_by_name_and_no_user_is_named() -> None:
    sim = Watched(
        prices={"local.nodes": 1.0},
        budget=[
            {"limit": 100.0, "match": {"provider": "local"}},
            {"limit": 50.0, "match": {"user": "root"}, "per": "day"},
            {"limit": 0.0, "match": {"queue": "none"}},
        ],
    )
    sim.lead.submit(whole(3))
    sim.until(sim.in_state(State.ONLINE))
    ratios = sim.read("budget_used_ratio")
    assert ratios.keys() == {
        ("provider local, per month",),
        ("users of budget 2, per day",),
        ("queue none, per month",),
    }
    records = sim.records
    reserved = sum(entry.reserved for entry in records.entries.values()) / 1e6
    assert ratios["provider local, per month",] == pytest.approx(reserved / 100)
    assert ratios["queue none, per month",] == 1
    assert "root" not in sim.text()


def test_notices_that_cannot_be_told_are_shown_by_whom_they_were_for() -> None:
    sim = Watched(notify={"command": ["true"], "webhook": "http://127.0.0.1:1/x"})
    sim.tick(2)
    assert sim.read("notices_failing") == {("command",): 0, ("webhook",): 0}
    changed(sim, untold={"webhook": "notify.webhook: 127.0.0.1: status 500"})
    assert sim.read("notices_failing") == {("command",): 0, ("webhook",): 1}


def test_no_label_has_an_id_and_all_names_are_in_the_catalog() -> None:
    sim = Watched()
    job = sim.lead.submit(whole(3), userid=4711)
    sim.until(sim.in_state(State.ONLINE))
    text = sim.text()
    assert sim.burst.id not in text
    assert "4711" not in text
    assert JobId(job)
    allowed = {"provider", "offer", "state", "reason", "queue", "result", "stage"}
    allowed |= {"method", "kind", "budget", "version", "le", "by"}
    for family in parse_text(text):
        assert family.documentation
        for sample in family.samples:
            assert sample.labels.keys() <= allowed
    declared = {metric.name for metric in CATALOG.values()}
    named = set(re.findall(rf"^# TYPE {PREFIX}(\S+)", text, re.M))
    assert named <= declared
    # Those that are not there yet have had nothing to tell.
    assert declared - named <= {
        *("forecast_near_ratio", "forecast_inside_ratio", "budget_used_ratio"),
        *("pending_jobs", "notices_failing"),
    }


def test_what_cannot_be_read_has_no_value() -> None:
    lead = FakeLead()
    sim = Watched(lead=lead)
    sim.tick(2)
    lead.unreadable = True
    sim.tick()
    for name in ("nodes_up", "nodes_idle", "pending_jobs", "slots"):
        assert sim.read(name) == {}
    assert sim.one("lead_up") == 0
    told = "the lead cannot be read: job manager is reloading"
    assert sim.shown.why_not_ready() == told
    sim.shown.lose("gone")
    assert "flux_burst_bursts" not in sim.text().replace("flux_burst_bursts_", "")


def test_names_follow_the_conventions_of_prometheus() -> None:
    for metric in CATALOG.values():
        assert re.fullmatch(r"[a-z][a-z_]*[a-z]", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        if metric.kind == "histogram":
            assert metric.name.endswith("_seconds")
        assert metric.text.endswith(".")
    assert len(LIVE_STATES) == len(State)
