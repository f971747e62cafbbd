# SPDX-License-Identifier: MIT
import math

import msgspec
import pytest

from burst.config import ProviderTable
from burst.core.cooldowns import (
    cool_down,
    count_unusable,
    forget_other_table,
    forgive,
    refuse_offer,
    refuse_spec,
    refused_specs,
)
from burst.core.provider_health import (
    BREAKER,
    FailureRecord,
    Health,
    Outcome,
    ProviderAnswer,
    Verb,
    after_answer,
    bound_times,
    describe_pause,
    expiry_times,
    pause_after,
    why_unavailable,
)
from burst.model.burst import Isolated
from burst.model.decision import clock_time
from burst.model.reason import Reason
from tests.builders import T0, but, settings
from tests.lifecycles import LEASE

LIMITS = settings(limits={"cooldown": "10m"}).limits


def said(verb, outcome, note=""):
    return ProviderAnswer(provider="p", verb=verb, outcome=outcome, note=note)


def hear(*answers, now=100.0, health=Health()):  # noqa: B008
    for verb, outcome in answers:
        health = after_answer(health, said(verb, outcome, "why"), LIMITS, now)
    return health


def reason(health, now):
    found = why_unavailable("p", "o", health, now)
    return found[0] if found else None


# Of a growth that fails, `observe` and `provision` tell what to think of the provider.
COUNTS = [verb for verb in Verb if verb is not Verb.RESIZE]


@pytest.mark.parametrize("outcome", Outcome)
def test_no_answer_to_a_resize_is_held_against_a_provider(outcome):
    known = Health(failed={"observe": 1}, trial=True)
    for _ in range(5):
        assert hear((Verb.RESIZE, outcome), health=known) == known


@pytest.mark.parametrize("verb", COUNTS)
def test_the_breaker_opens_after_so_many_failures_in_a_row_of_any_method(verb):
    before = hear(*[(verb, Outcome.UNEXPECTED)] * (BREAKER - 1))
    last = hear((verb, Outcome.UNEXPECTED), health=before)

    assert reason(before, 100) is None
    facts = {"provider": "p", "failures": BREAKER, "until": 400.0}
    assert why_unavailable("p", "o", last, 100) == (Reason.BREAKER, facts)
    assert not last.on_trial(399)
    assert last.on_trial(400)
    assert reason(last, 400) is None
    assert reason(hear((verb, Outcome.UNEXPECTED), health=last, now=400), 500)
    # A burst that was asked for is not online yet.
    trial = Health(trial=verb is Verb.PROVISION)
    assert hear((verb, Outcome.OK), health=last) == trial
    assert trial.on_trial(100) is trial.trial


def test_what_one_method_does_well_excuses_no_other():
    broken = hear(
        (Verb.PROVISION, Outcome.UNEXPECTED),
        (Verb.OBSERVE, Outcome.OK),
        *[(Verb.PROVISION, Outcome.UNEXPECTED)] * (BREAKER - 1),
        (Verb.OFFERS, Outcome.OK),
    )

    assert reason(broken, 100) is Reason.BREAKER


def test_an_answer_on_purpose_ends_a_row_of_failures():
    for outcome in (Outcome.CAPACITY, Outcome.SPEC, Outcome.OK):
        row = [(Verb.PROVISION, Outcome.UNEXPECTED), (Verb.PROVISION, outcome)]
        assert hear(*row).is_default
    row = [(Verb.PROVISION, Outcome.UNEXPECTED), (Verb.PROVISION, Outcome.TRANSIENT)]
    assert hear(*row).failed == {"provision": 1}


@pytest.mark.parametrize("verb", COUNTS)
def test_a_refusal_of_any_method_disables_until_that_method_works(verb):
    refused = hear((verb, Outcome.REFUSED))

    facts = {"provider": "p", "why": "why"}
    assert why_unavailable("p", "o", refused, 101) == (Reason.DISABLED, facts)
    others = [(other, Outcome.OK) for other in Verb if other is not verb]
    assert hear(*others, health=refused) == refused
    again = hear((verb, Outcome.OK), health=refused)
    assert again == Health(trial=verb is Verb.PROVISION)
    assert forgive(again, LEASE).is_default


@pytest.mark.parametrize("verb", [Verb.PROVISION, Verb.REAP])
def test_after_a_while_one_burst_tries_whether_it_still_refuses(verb):
    refused = hear((verb, Outcome.REFUSED))

    assert not refused.on_trial(100 + 59)
    assert refused.on_trial(100 + 60)
    assert reason(refused, 100 + 60) is None
    again = hear((verb, Outcome.REFUSED), health=refused, now=2000)
    assert again.rows == {f"method/{verb.value}": FailureRecord(2, 2120, why="why")}
    # What had been asked for meanwhile is not counted.
    again = hear((verb, Outcome.REFUSED), health=again, now=2010)
    assert again.rows == {f"method/{verb.value}": FailureRecord(2, 2130, why="why")}
    for now in range(4000, 40000, 4000):
        again = hear((verb, Outcome.REFUSED), health=again, now=now)
    assert again.tried_at == now + 1800


@pytest.mark.parametrize("asked", [Verb.OFFERS, Verb.OBSERVE])
@pytest.mark.parametrize("verb", [Verb.PROVISION, Verb.REAP])
def test_what_works_again_shows_that_others_are_worth_a_try(verb, asked):
    """A role that was taken away, or a namespace with its roles, is there again."""
    both = hear((verb, Outcome.REFUSED), (asked, Outcome.REFUSED))
    assert reason(both, 102) is Reason.DISABLED

    mended = hear((asked, Outcome.OK), health=both, now=102.0)
    assert mended.on_trial(102)
    assert reason(mended, 102) is None
    # One that is refused still waits for longer, whatever else goes on working.
    again = hear((verb, Outcome.REFUSED), health=mended, now=103.0)
    again = hear((asked, Outcome.OK), health=again, now=104.0)
    assert again.tried_at == 103 + 120


@pytest.mark.parametrize("verb", [Verb.OFFERS, Verb.OBSERVE])
def test_what_is_asked_all_the_time_needs_no_burst_as_a_trial(verb):
    refused = hear((verb, Outcome.REFUSED))

    assert refused.tried_at == math.inf
    assert reason(refused, 1e12) is Reason.DISABLED


def test_a_refused_spec_is_held_against_no_provider():
    assert hear((Verb.PROVISION, Outcome.SPEC)).is_default
    assert hear((Verb.REAP, Outcome.SPEC)).is_default
    assert hear((Verb.OBSERVE, Outcome.SPEC)).disabled == "why"


def test_a_spec_that_was_refused_is_not_asked_for_again_for_longer_each_time():
    health, until = Health(), []
    for now in (100.0, 200.0, 400.0):
        health = refuse_spec(health, LEASE, "no" * 1000, LIMITS, now)
        ((key, spec),) = health.rows.items()
        until.append(spec.until)

    assert until == [160, 320, 640]
    assert key == f"spec/{LEASE.offer}/{LEASE.slot}/{LEASE.nodes}"
    assert len(spec.why) == 600
    (told,) = refused_specs(health, LEASE.offer)
    assert (told["slot"], told["nodes"]) == (LEASE.slot, LEASE.nodes)
    assert (told["until"], told["why"]) == (640, spec.why)
    assert refused_specs(health, "another") == []
    refused = refuse_offer(Health(), LEASE, "no", LIMITS, 100.0)
    (told,) = refused_specs(refused, LEASE.offer)
    assert (told["slot"], told["nodes"]) == ("", 0)
    assert expiry_times(health)[-1] == 640
    assert forgive(health, LEASE).is_default
    isolated = but(LEASE, isolated=Isolated(kind="service"))
    assert refuse_spec(Health(), isolated, "no", LIMITS, 0.0).is_default


def test_an_offer_whose_nodes_a_rule_forbids_is_not_asked_for_in_any_size():
    health = refuse_offer(Health(), LEASE, "no root here", LIMITS, 100.0)
    health = refuse_offer(health, LEASE, "no root here", LIMITS, 160.0)
    ((key, spec),) = health.rows.items()

    assert (key, spec.failures, spec.until) == (f"spec/{LEASE.offer}//0", 2, 280)
    assert forgive(health, LEASE).is_default
    for own in ({"isolated": Isolated(kind="service")}, {"image": "mine:1"}):
        lease = but(LEASE, **own)
        assert refuse_offer(Health(), lease, "no", LIMITS, 0.0).is_default


def test_a_refused_spec_is_tried_again_once_its_provider_has_another_table():
    """What refused it, such as a policy, may accept what is made of that."""
    table = ProviderTable(type="kube", options={"image": "a", "user": 1})
    held = refuse_spec(Health(), LEASE, "no", LIMITS, 100.0)
    noted = forget_other_table(held, table)
    assert noted.rows == held.rows
    same = ProviderTable(type="kube", options={"user": 1, "image": "a"})
    assert forget_other_table(noted, same) == noted
    other = ProviderTable(type="kube", options={"image": "b", "user": 1})
    assert forget_other_table(noted, other).is_default
    assert forget_other_table(forgive(noted, LEASE), table).is_default


def test_only_so_many_refused_specs_are_remembered():
    health = Health()
    for number in range(150):
        lease = but(LEASE, offer=f"o{number}")
        health = refuse_spec(health, lease, "no", LIMITS, 100.0)

    assert len(health.rows) == 100
    assert next(iter(health.rows)).startswith("spec/o50/")


def test_an_offer_is_set_aside_for_longer_each_time():
    health = Health()
    lengths = []
    now = 0.0
    for _ in range(7):
        health = cool_down(health, "o", LIMITS, now)
        lengths.append(health.rows["offer/o"].until - now)
        # What was asked for before it was set aside says nothing more.
        again = cool_down(health, "o", LIMITS, now + 9).rows["offer/o"]
        assert again.failures == len(lengths)
        now = health.rows["offer/o"].until

    assert lengths == [600, 1200, 2400, 4800, 9600, 9600, 9600]
    facts = {"why": "did not come up", "until": now, "provider": "p"}
    told = why_unavailable("p", "o", health, now - 1)
    assert told == (Reason.OFFER_COOLDOWN, facts)
    assert why_unavailable("p", "o", health, now) is None
    assert why_unavailable("p", "other", health, 0.0) is None
    lease = but(LEASE, offer="o")
    assert forgive(health, lease).is_default
    assert health.rows["offer/o"] == FailureRecord(7, now)


def test_what_is_too_much_for_one_is_not_held_against_smaller_bursts():
    health = Health()
    for now in (0.0, 600.0, 1800.0):
        health = cool_down(health, "o", LIMITS, now, 4)
    assert health.rows["offer/o"] == FailureRecord(3, 4200.0, 4)
    assert why_unavailable("p", "o", health, 1800.0) is None

    # A larger one that was asked for earlier is no further failure.
    assert cool_down(health, "o", LIMITS, 1800.0, 8) == health
    # A smaller one is a failure of its own; any other is one of all sizes.
    for nodes in (2, 1, 0):
        health = cool_down(health, "o", LIMITS, 1900.0, nodes)
        assert health.rows["offer/o"] == FailureRecord(1, 2500.0, nodes)
    assert why_unavailable("p", "o", health, 2000.0)
    # Afterwards what is refused is known of that size only.
    health = cool_down(health, "o", LIMITS, 2500.0, 4)
    assert health.rows["offer/o"] == FailureRecord(2, 3700.0, 4)
    # What came up tells nothing of larger ones.
    for nodes, known in ((3, True), (4, False)):
        names = tuple(f"h{number}" for number in range(nodes))
        lease = but(LEASE, offer="o", hosts=names)
        assert bool(forgive(health, lease).rows) is known
    # What failed long ago does not count.
    health = cool_down(health, "o", LIMITS, 3700.0 + 9601.0, 4)
    assert health.rows["offer/o"].failures == 1


def test_a_record_without_a_size_is_of_bursts_of_any_size():
    text = '{"rows":{"offer/o":{"failures":2,"until":700.0}}}'
    health = msgspec.json.decode(text, type=Health)

    assert health.rows["offer/o"] == FailureRecord(2, 700.0, 0)
    assert why_unavailable("p", "o", health, 100.0)


def test_what_a_clock_far_ahead_wrote_is_held_against_nobody_for_longer_than_a_pause():
    far = 3e8
    health = hear(*[(Verb.PROVISION, Outcome.UNEXPECTED)] * BREAKER, now=far)
    health = hear((Verb.REAP, Outcome.REFUSED), now=far, health=health)
    health = cool_down(health, "o", LIMITS, far, 4)
    health = refuse_spec(health, LEASE, "no", LIMITS, far)
    for _ in range(2):
        health = count_unusable(health, "o", "why", LIMITS, far)
    found = bound_times(health, LIMITS, 100.0)

    assert found.until == 400.0
    assert found.rows["method/reap"] == FailureRecord(1, 1900.0, why="why")
    assert found.rows["offer/o"] == FailureRecord(1, 9700.0, 4)
    unusable = found.rows["unusable/o"]
    assert (unusable.at, unusable.until) == (100.0, 9700.0)
    (told,) = refused_specs(found, LEASE.offer)
    assert told["until"] == 1900.0
    assert found.on_trial(1900.0)
    # What is not longer than such a pause stays as it is.
    assert bound_times(health, LIMITS, far) == health
    assert bound_times(Health(), LIMITS, 100.0).is_default


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 1), (2, 2), (5, 16), (99, 60)])
def test_pauses_grow_up_to_a_minute(attempts, seconds):
    assert pause_after(Outcome.TRANSIENT, attempts, None) == seconds


def test_a_provider_may_ask_for_patience_but_not_for_ever():
    assert pause_after(Outcome.TRANSIENT, 5, 2.0) == 2.0
    assert pause_after(Outcome.TRANSIENT, 1, -5.0) == 1.0
    assert pause_after(Outcome.TRANSIENT, 1, 1e9) == 300.0
    # It would be called hundreds of times a second.
    assert pause_after(Outcome.TRANSIENT, 1, 0.0) == 1.0
    assert pause_after(Outcome.REFUSED, 1, 0.001) == 1.0
    assert pause_after(Outcome.OK, 1, 7.0) == 0.0


def test_a_long_pause_is_told_with_its_end():
    told = f"; as that asks for a pause, it is called again at {clock_time(T0 + 61)}"
    assert describe_pause(T0, T0 + 60) == ""
    assert describe_pause(T0, T0 + 61) == told
