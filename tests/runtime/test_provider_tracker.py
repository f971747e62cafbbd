# SPDX-License-Identifier: MIT
import logging

import pytest

from burst.core.provider_health import FailureRecord, Health, Outcome, Verb
from burst.core.records import Records
from burst.errors import ConfigError, Refused, Transient
from burst.model.burst import BurstId
from burst.model.decision import clock_time
from burst.runtime.action_runner import make_spec
from burst.runtime.provider_tracker import ProviderTracker
from burst.testing.fake import FakeProvider
from tests.builders import T0, but, identity, settings
from tests.core.ticks import recorded
from tests.fakes import HandExecutor
from tests.lifecycles import run


class Idle(FakeProvider):
    """Makes and deletes nothing; `fails` are the errors of its next calls."""

    def __init__(self, name):
        super().__init__(name)
        self.fails = []

    def provision(self, spec):
        if self.fails:
            raise self.fails.pop()

    def reap(self, burst_id):
        pass


class Bench:
    def __init__(self, kind=Idle, **daemon):
        self.now = T0
        self.provider = kind("local")
        self.executor = HandExecutor(lambda: self.now)
        self.tracker = ProviderTracker(
            {"local": self.provider}, self.executor, settings(daemon=daemon).daemon
        )

    def poll(self, records=None):
        return self.tracker.poll(records or Records(), self.now) - self.now

    def answer(self, records=None):
        self.executor.pump()
        self.tracker.collect_results(records or Records(), self.now)
        return self.tracker.views["local"]

    def turn(self, records=None):
        """Ask what is due, and take in the answers."""
        self.poll(records)
        return self.answer(records)

    def provision(self, burst):
        self.tracker.call(burst, Verb.PROVISION, make_spec(burst, identity()))

    def asked(self):
        return [task.verb.value for task in self.executor.tasks]


PROVISION = recorded(run("provision-start"))
ONLINE = recorded(run("provision-start", "provision-finish", "online"))
(BURST,) = PROVISION.bursts.values()


def test_an_idle_provider_is_asked_at_the_cadence():
    bench = Bench(cadence="10s")

    assert bench.poll() == 10
    assert bench.asked() == ["offers", "observe"]
    bench.answer()
    bench.now += 9
    assert bench.poll() == 1
    assert bench.asked() == []
    bench.now += 1
    assert bench.poll() == 10
    assert bench.asked() == ["observe"]


@pytest.mark.parametrize(
    ("records", "takes", "pauses"),
    [
        (ONLINE, 0.0, [2, 2, 2]),
        # From quick to usual while one comes.
        (PROVISION, 0.0, [0.1, 0.2, 0.4, 0.8, 1.6, 2, 2]),
        # It rests after slow answers, for no longer than the usual pause.
        (PROVISION, 0.3, [1.5, 1.5, 1.5]),
        (PROVISION, 20.0, [2]),
    ],
    ids=["online", "coming", "slow", "very slow"],
)
def test_a_provider_with_a_burst_is_asked_more_often(records, takes, pauses):
    bench = Bench(cadence="10s")

    def observe():
        bench.now += takes
        return []

    bench.provider.observe = observe
    bench.turn(records)
    if records is PROVISION:
        bench.provision(BURST)
        bench.answer(records)
    found = []
    for _ in pauses:
        found.append(round(bench.poll(records), 3))
        bench.now += found[-1] + 0.001
        bench.poll(records)
        assert bench.asked() == ["observe"]
        bench.answer(records)
    assert found == pauses


def test_a_provider_that_is_silent_is_asked_once_and_in_trouble(caplog):
    caplog.set_level(logging.INFO)
    bench = Bench()
    bench.poll()
    bench.now += 121
    assert bench.poll() > 0
    assert bench.asked() == ["offers", "observe"], "nothing is asked twice at a time"
    for _ in range(2):
        bench.tracker.collect_results(Records(), bench.now)
    view = bench.tracker.views["local"]
    late = "no answer for more than 2m"
    assert (view.trouble, view.no_offers) == (f"observe: {late}", f"offers: {late}")
    view = bench.answer()
    assert (view.trouble, view.no_offers) == ("", "")
    told = ("offers: {}", "observe: {}", "offers works again", "observe works again")
    assert caplog.messages == [f"provider local: {it.format(late)}" for it in told]


def test_what_could_not_be_read_is_trouble_and_asked_again_soon():
    bench = Bench()
    bench.provider.next_offers_error = Transient("busy")
    bench.provider.next_observe_error = Transient("busy")
    view = bench.turn()
    assert view.trouble == "observe: busy"
    assert view.no_offers == "offers: busy"
    assert view.offers is None

    assert bench.poll() == 1
    assert bench.asked() == []
    bench.now += 1
    bench.poll()
    assert bench.asked() == ["offers", "observe"]
    view = bench.answer()
    assert (view.trouble, view.no_offers) == ("", "")
    assert bench.tracker.views["local"].offers


def test_until_when_a_provider_asked_for_patience_is_told():
    bench = Bench()
    bench.provider.next_observe_error = Transient("closed", retry_after=3600.0)
    view = bench.turn()
    at = clock_time(bench.now + 300)
    pause = f"as that asks for a pause, it is called again at {at}"
    assert view.trouble == f"observe: closed; {pause}"
    bench.now += 299
    bench.poll()
    assert "observe" not in bench.asked()
    bench.now += 1
    bench.poll()
    assert "observe" in bench.asked()


def test_only_bursts_that_were_asked_for_in_time_can_be_missed():
    bench = Bench()
    bench.poll(PROVISION)
    assert bench.answer(PROVISION).absent == {}

    bench.provision(BURST)
    bench.poll(PROVISION)
    assert bench.answer(PROVISION).absent == {BURST.id: 1}
    bench.now += 10
    bench.poll(ONLINE)
    assert bench.answer(ONLINE).absent == {BURST.id: 2}


def test_attempts_are_counted_and_paused_longer_each_time():
    bench = Bench()
    pauses = []
    for _ in range(3):
        bench.provider.fails = [Transient("busy")]
        bench.provision(BURST)
        bench.answer(PROVISION)
        pauses.append(bench.tracker.calls[BURST.id].retry_at - bench.now)
    assert pauses == [1, 2, 4]

    bench.tracker.call(BURST, Verb.REAP)
    bench.answer(PROVISION)
    call = bench.tracker.calls[BURST.id]
    assert (call.attempts, call.outcome, call.retry_at) == (1, Outcome.OK, bench.now)
    answered = bench.tracker.answered
    assert [said.burst for said in answered] == [BURST.id] * 4
    bench.tracker.forget_answers(answered, PROVISION)
    assert not bench.tracker.answered
    assert BURST.id in bench.tracker.calls
    bench.tracker.forget_answers((), Records())
    assert not bench.tracker.calls


def test_an_answer_about_a_burst_that_is_forgotten_is_dropped():
    bench = Bench()
    bench.provision(BURST)
    bench.tracker.forget_answers((), Records())
    bench.answer()

    assert not bench.tracker.answered


@pytest.mark.parametrize(
    "error", [Transient("busy"), Refused("no"), KeyError("x"), ConfigError("port")]
)
def test_questions_that_fail_are_asked_again_ever_later(error, caplog):
    """An answer wakes the engine at once, so nothing else would pace them."""
    bench = Bench()
    asked = []
    for _ in range(1_200):
        bench.provider.next_offers_error = error
        bench.provider.next_observe_error = error
        due = bench.poll(ONLINE)
        asked += bench.asked()
        bench.answer(ONLINE)
        assert due > 0
        bench.now += 0.5

    assert asked.count("offers") == asked.count("observe") == 15
    told = [r for r in caplog.records if "offers" in r.getMessage()]
    assert len(told) == 1


def test_a_failure_is_logged_anew_when_its_text_changes_and_when_it_is_over(caplog):
    caplog.set_level("INFO")
    bench = Bench()
    for error in (KeyError("x"), KeyError("x"), Transient("busy"), None):
        bench.provider.next_observe_error = error
        bench.poll(ONLINE)
        bench.answer(ONLINE)
        bench.now += 100

    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "provider local: observe: KeyError: 'x'",
        "provider local: observe: busy",
        "provider local: observe works again",
    ]
    assert caplog.records[0].exc_info
    assert not caplog.records[1].exc_info


def test_a_provider_that_a_person_enabled_is_asked_at_once():
    bench = Bench()
    bench.provider.next_observe_error = Refused("no rights")
    bench.turn()
    refused = Records(
        health={"local": Health(rows={"method/observe": FailureRecord(why="no")})}
    )
    bench.now += 0.1
    bench.poll(refused)
    assert bench.asked() == []

    bench.poll(Records())
    assert bench.asked() == ["observe"]


class Garbled(FakeProvider):
    def offers(self):
        return ["small"]


def test_what_is_no_answer_is_a_failure_of_the_provider():
    bench = Bench(kind=Garbled)
    view = bench.turn()

    assert view.no_offers == "offers: BadAnswer: it returned 'small', not Offer"
    assert bench.tracker.answered[0].outcome is Outcome.UNEXPECTED


def test_a_call_that_ends_while_its_provider_is_disabled_is_not_pending_for_ever():
    bench = Bench()
    daemon = settings().daemon
    bench.tracker.call(BURST, Verb.REAP)
    bench.tracker.replace({}, daemon)
    bench.executor.pump()
    bench.tracker.collect_results(PROVISION, bench.now)
    bench.tracker.replace({"local": bench.provider}, daemon)

    assert bench.tracker.calls[BURST.id].outcome is not Outcome.PENDING


def test_what_a_provider_has_is_read_soon_after_an_orphan_is_reaped():
    bench = Bench(cadence="10s")
    bench.turn()
    bench.now += 1
    bench.tracker.reap_orphan("local", BurstId("orphan"), bench.now)
    bench.poll()

    assert bench.asked() == ["reap", "observe"]


class Resizing(Idle):
    def resize(self, spec):
        pass


def test_a_resize_that_is_repeated_was_taken_when_it_was_first():
    """What the provider said of the burst before is not what came of it."""
    bench = Bench(Resizing)
    (burst,) = ONLINE.bursts.values()
    spec = make_spec(burst, identity())
    taken = []
    for hosts in (spec.hosts, spec.hosts, spec.hosts[:1]):
        bench.tracker.call(burst, Verb.RESIZE, but(spec, hosts=hosts))
        under_way = bench.tracker.calls[burst.id].taken_at
        bench.answer(ONLINE)
        taken.append((under_way, bench.tracker.calls[burst.id].taken_at))
        bench.now += 5

    assert taken == [(0.0, T0), (T0, T0), (0.0, T0 + 10)]
