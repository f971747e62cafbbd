# SPDX-License-Identifier: MIT
import pytest

from burst.model.scheduler import FLUXION, Order, Scheduler, order_of


@pytest.mark.parametrize(
    ("policies", "order"),
    [
        ({"default": "fcfs"}, Order.FIFO),
        ({"default": "easy"}, Order.EASY),
        ({"a": "conservative", "b": "hybrid"}, Order.CONSERVATIVE),
        ({"a": "fcfs", "b": "conservative"}, Order.EASY),
        ({"default": "of a later version"}, Order.EASY),
        ({}, Order.EASY),
    ],
)
def test_fluxions_policies_give_an_order(policies, order):
    assert order_of(policies) is order


@pytest.mark.parametrize(
    ("known", "title", "fcfs"),
    [
        (Scheduler(), "Flux's scheduler", ()),
        (Scheduler(name="sched-simple"), "sched-simple", ()),
        (Scheduler(name=FLUXION), "Fluxion", ()),
        (
            Scheduler(name=FLUXION, policies={"b": "fcfs", "a": "fcfs", "c": "easy"}),
            "Fluxion (easy, fcfs)",
            ("a", "b"),
        ),
    ],
)
def test_it_is_named(known: Scheduler, title: str, fcfs: tuple[str, ...]) -> None:
    assert known.title == title
    assert known.fcfs_queues == fcfs


@pytest.mark.parametrize(
    ("known", "commands"),
    [
        (Scheduler(), "flux module reload SCHEDULER"),
        (Scheduler(name="sched-simple"), "flux module reload sched-simple"),
        (
            Scheduler(name="sched-burst", loaded_as="/a/b.py policy=fifo"),
            "flux module reload --name=sched-burst /a/b.py policy=fifo",
        ),
        (
            Scheduler(name=FLUXION),
            "flux module remove sched-fluxion-qmanager, flux module reload"
            " sched-fluxion-resource, flux module load sched-fluxion-qmanager",
        ),
    ],
)
def test_it_is_said_how_it_is_loaded_again(known: Scheduler, commands: str) -> None:
    assert known.reload == commands
