# SPDX-License-Identifier: MIT
"""What a plug-in returns is what the interface says, or its own failure."""

import math

import msgspec
import pytest

from burst.config import Seconds
from burst.model.burst import BurstId
from burst.model.shape import Shape
from burst.provider import (
    OUTPUT_MOST,
    BurstStatus,
    FollowerStatus,
    InstanceStatus,
    Offer,
    Phase,
)
from burst.provider_answers import LONGEST_WHY, BadAnswer, check_offers, check_statuses
from tests.builders import but

OFFER = Offer(name="small", shape=Shape(4), max_nodes=8, price=1.5)
STATUS = BurstStatus(burst_id=BurstId("burst-0-abc"), phase=Phase.PENDING)


def running(number):
    """As many followers, which run."""
    return tuple(FollowerStatus(f"h{each}", Phase.RUNNING) for each in range(number))


def test_what_is_as_declared_is_returned_as_a_tuple():
    assert check_offers([OFFER]) == (OFFER,)
    assert check_offers(iter([OFFER])) == (OFFER,)
    assert check_statuses([STATUS]) == (STATUS,)
    assert check_statuses(()) == ()


def test_a_duration_of_the_settings_is_a_number():
    (offer,) = check_offers([but(OFFER, join_time=Seconds(90))])
    assert type(offer.join_time) is float
    assert offer.join_time == 90


@pytest.mark.parametrize(
    "answer",
    [
        None,
        5,
        [but(OFFER, join_time=object())],
        "small",
        [None],
        [{"name": "small"}],
        [STATUS],
        [OFFER, OFFER],
        [but(OFFER, name="")],
        [but(OFFER, name="a\nb")],
        [but(OFFER, name="x" * 256)],
        [but(OFFER, name=7)],
        [but(OFFER, shape=None)],
        [but(OFFER, shape=Shape(0))],
        [but(OFFER, shape=Shape(-1))],
        [but(OFFER, max_nodes="8")],
        [but(OFFER, max_nodes=-1)],
        [but(OFFER, max_nodes=0)],
        [but(OFFER, price=math.nan)],
        [but(OFFER, price=math.inf)],
        [but(OFFER, price=-1.0)],
        [but(OFFER, fee=-1.0)],
        [but(OFFER, fee=math.nan)],
        [but(OFFER, join_time="soon")],
        [but(OFFER, join_time=math.nan)],
        [but(OFFER, lifetime=math.nan)],
        [but(OFFER, lifetime=-5.0)],
        [but(OFFER, max_nodes=10**30)],
        [but(OFFER, modes=())],
        [but(OFFER, modes=("odd",))],
        (but(OFFER, name=str(number)) for number in range(1001)),
    ],
)
def test_offers_that_cannot_be_are_no_answer(answer):
    with pytest.raises(BadAnswer):
        check_offers(answer)


@pytest.mark.parametrize("answer", [None])
def test_what_was_to_be_returned_is_named(answer):
    with pytest.raises(BadAnswer, match=r"it returned None, not a sequence of Offer$"):
        check_offers(answer)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [OFFER],
        [STATUS, STATUS],
        [but(STATUS, phase=7)],
        [but(STATUS, burst_id=None)],
        [but(STATUS, followers=["burst-0-0"])],
        [but(STATUS, followers=(FollowerStatus("", Phase.RUNNING),))],
        [but(STATUS, followers=(FollowerStatus("h", Phase.RUNNING),) * 2)],
        [but(STATUS, followers=running(100_001))],
        [but(STATUS, why=["a", "b"])],
        [but(STATUS, instance=but(InstanceStatus(), exit_status="0"))],
        [but(STATUS, instance=but(InstanceStatus(), exit_status=10**30))],
    ],
)
def test_statuses_that_cannot_be_are_no_answer(answer):
    with pytest.raises(BadAnswer):
        check_statuses(answer)


def test_the_word_for_a_phase_is_taken_for_that_phase():
    (found,) = check_statuses([but(STATUS, phase="running")])

    assert found.phase is Phase.RUNNING


def test_what_is_no_text_of_unicode_can_be_stored():
    instance = InstanceStatus(output="o\udc80", access="a\udc80")
    followers = (FollowerStatus("h", Phase.FAILED, "f\udc80", lost="l\udc80"),)
    odd = but(STATUS, why="w\udc80", followers=followers, instance=instance)

    found = check_statuses([odd])

    assert (found[0].why, found[0].followers[0].why) == ("w?", "f?")
    assert found[0].followers[0].lost == "l?"
    assert b"a?" in msgspec.json.encode(found)


def test_long_texts_are_cut_and_keep_their_ends():
    why = "begin" + "x" * 2_000_000 + "end"
    instance = InstanceStatus(output="\N{SNOWMAN}" * OUTPUT_MOST, access="a" * 5000)
    followers = (FollowerStatus("h", Phase.FAILED, why, lost=why),)
    long = but(STATUS, why=why, followers=followers, instance=instance)

    (found,) = check_statuses([long])

    assert len(found.why) == len(found.followers[0].why) == LONGEST_WHY
    assert len(found.followers[0].lost) == LONGEST_WHY
    assert found.why.startswith("begin")
    assert found.why.endswith("end")
    assert found.instance is not None
    assert len(found.instance.output.encode()) <= OUTPUT_MOST
    assert set(found.instance.output) == {"\N{SNOWMAN}"}
    assert len(found.instance.access) == 1000
