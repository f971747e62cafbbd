# SPDX-License-Identifier: MIT
import time

import msgspec
import pytest

from burst.core.plan.constraints import MOST_BYTES, MOST_WORK, Constraints
from burst.model.constraint import ConstraintEvaluator, canonical
from tests.builders import identity


@pytest.mark.parametrize(
    ("constraint", "ranks"),
    [
        ("", {0, 1, 2, 3, 4, 5}),
        ('{"properties":["burst"]}', {2, 3, 4, 5}),
        ('{"hostlist":["lead-1,burst-0-[0-1]"]}', {1, 2, 3}),
        # What cannot be read admits none.
        ('{"properties":[7]}', set()),
        ('{"hostlist":["x["]}', set()),
        ('["x"]', set()),
        # What a user can write must not eat our memory.
        ('{"hostlist":["lead-0","n[0-99999]"]}', set()),
        ('{"hostlist":["lead-0","n[0-3999]"]}', {0}),
        ('{"ranks":["1","3-99999"]}', {1, 3, 4, 5}),
        ('{"ranks":["7-99999"]}', set()),
        ('{"ranks":["3-99999999999999999999999"]}', {3, 4, 5}),
    ],
)
def test_a_lead_s_ranks_are_admitted_by_constraints(constraint, ranks):
    lead = identity("lead-[0-1],burst-0-[0-3]")

    assert Constraints(lead).admitted(constraint) == ranks


def test_what_jobs_asked_for_in_the_tick_before_is_not_evaluated_again():
    many = [f'{{"hostlist":["burst-0-0","n{i}-[0-4000]"]}}' for i in range(50)]

    def work_of_a_tick():
        constraints = Constraints(identity())
        assert all(constraints.admitted(text) == {2} for text in many)
        return constraints.work

    assert work_of_a_tick() > 50 * 4000
    assert work_of_a_tick() == 0


def test_the_costliest_constraint_costs_a_large_lead_little_more_than_a_small_one():
    name = '{"or":["^local","burst"]}'.replace("or", "properties")
    deep = '{"and":[{"properties":["^nosuch"]},' * 14 + name + "]}" * 14
    wide = f'{{"or":[{",".join([deep] * 8)}]}}'
    assert canonical(msgspec.json.decode(wide)) == wide

    def seconds(hosts):
        lead = identity(f"lead-[0-1],burst-0-[0-{hosts - 1}]")
        ranks = {host: rank for rank, host in enumerate(lead.hosts)}
        evaluator = ConstraintEvaluator(ranks, lead.properties)
        start = time.thread_time()
        mask = evaluator.mask(wide)
        took = time.thread_time() - start
        assert mask.bit_count() == hosts
        return took

    small, large = (min(seconds(n) for _ in range(5)) for n in (100, 10_000))
    assert large < 20 * small, "it has a hundred times the ranks"


def left_by(constraints, wanted):
    """The constraints that are left for another tick."""
    constraints.read(wanted)
    return constraints.later


def test_constraints_of_many_waiting_jobs_are_evaluated_once():
    lead = identity("many-[0-9]")
    asked = [(1, f'{{"ranks":["{number}"]}}') for number in range(10_000)]
    assert left_by(Constraints(lead), asked) == frozenset()

    again = Constraints(lead)
    assert left_by(again, asked) == frozenset()
    assert all(again.admitted(text) is not None for _, text in asked)
    assert again.work == 0


def costly(user, count):
    return [
        (user, f'{{"hostlist":["lead-0,u{user}j{i}-[0-1999]"]}}') for i in range(count)
    ]


def test_a_tick_evaluates_so_much_and_each_user_has_a_share_of_it():
    lead = identity("share-[0-9],lead-0")
    first, second = costly(1, 200), costly(2, 3)
    wanted = [*first, *second, (3, '{"ranks":["1"]}')]
    left: set[str] = set()
    for _ in range(8):
        constraints = Constraints(lead)
        later = left_by(constraints, wanted)
        # The last one of each user may go beyond his share.
        assert constraints.work <= MOST_WORK + 3 * 2100
        assert not left or later < left
        left = set(later)
        assert not left & {text for user, text in wanted if user != 1}
    assert not left
    assert left_by(Constraints(lead), wanted) == frozenset()


def test_more_users_than_shares_do_not_take_longer():
    lead = identity("users-[0-9]")
    wanted = [costly(user, 1)[0] for user in range(200)]
    constraints = Constraints(lead)

    assert 140 < len(left_by(constraints, wanted)) < 155
    assert constraints.work <= MOST_WORK + 2100


def test_what_is_remembered_is_bounded_in_bytes():
    lead = identity("large-[0-19999]")
    constraints = Constraints(lead)
    rest = '{"ranks":["0-19998"]}'
    asked = [f'{{"or":[{{"ranks":["{i}"]}},{rest}]}}' for i in range(13_000)]
    for text in asked:
        constraints.admitted(text)
    constraints.read([(1, asked[-1])])
    before = constraints.work

    held = len(constraints._evaluator._remembered)
    assert 0.8 * MOST_BYTES < held * (200 + 20_000 // 8) <= MOST_BYTES
    again = Constraints(lead)
    again.admitted(asked[-1])
    assert again.work == 0
    again.admitted(asked[0])
    assert 0 < again.work < before
