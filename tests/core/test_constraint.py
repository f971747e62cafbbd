# SPDX-License-Identifier: MIT
import time

import msgspec
import pytest

from burst.core.constraint import Constraints
from burst.model.constraint import canonical
from tests.build import identity


@pytest.mark.parametrize(
    ("constraint", "ranks"),
    [
        ("", {0, 1, 2, 3, 4, 5}),
        ('{"properties":["burst"]}', {2, 3, 4, 5}),
        ('{"properties":["^burst"]}', {0, 1}),
        ('{"properties":["burst","nosuch"]}', set()),
        ('{"properties":[7]}', set()),
        ('{"properties":["^nosuch"]}', {0, 1, 2, 3, 4, 5}),
        ('{"hostlist":["lead-1,burst-0-[0-1]"]}', {1, 2, 3}),
        ('{"hostlist":["lead-1","burst-0-0"]}', {1, 2}),
        ('{"hostlist":[7]}', set()),
        ('{"hostlist":["x["]}', set()),
        ('{"ranks":["0-1","4"]}', {0, 1, 4}),
        ('{"ranks":"2"}', {2}),
        ('{"ranks":["x"]}', set()),
        ('{"ranks":[1]}', set()),
        ('{"and":[{"ranks":["0-3"]},{"properties":["burst"]}]}', {2, 3}),
        ('{"or":[{"ranks":["0"]},{"ranks":["5"]}]}', {0, 5}),
        ('{"not":[{"properties":["burst"]}]}', {0, 1}),
        ('{"not":[]}', set()),
        ('{"and":{"ranks":"1"}}', set()),
        ('{"nosuch":["x"]}', set()),
        ('["x"]', set()),
        # What a user can write must not eat our memory.
        ('{"hostlist":["lead-0","n[0-99999]"]}', set()),
        ('{"hostlist":["lead-0","n[0-3999]"]}', {0}),
        ('{"ranks":["1","3-99999"]}', {1, 3, 4, 5}),
        ('{"ranks":["7-99999"]}', set()),
        ('{"ranks":["3-99999999999999999999999"]}', {3, 4, 5}),
    ],
)
def test_evaluates_constraints_as_flux_does(constraint, ranks):
    lead = identity("lead-[0-1],burst-0-[0-3]")

    assert Constraints(lead).admitted(constraint) == ranks


def test_what_jobs_asked_for_in_the_tick_before_is_not_evaluated_again():
    many = [f'{{"hostlist":["burst-0-0","n{i}-[0-4000]"]}}' for i in range(50)]

    def tick():
        start = time.thread_time()
        constraints = Constraints(identity())
        assert all(constraints.admitted(text) == {2} for text in many)
        return time.thread_time() - start

    tick()
    assert min(tick() for _ in range(5)) < 0.1


def test_the_costliest_constraint_of_a_large_lead_takes_milliseconds():
    lead = identity("lead-[0-1],burst-0-[0-9999]")
    name = '{"or":["^local","burst"]}'.replace("or", "properties")
    deep = '{"and":[{"properties":["^nosuch"]},' * 14 + name + "]}" * 14
    wide = f'{{"or":[{",".join([deep] * 8)}]}}'
    assert canonical(msgspec.json.decode(wide)) == wide

    start = time.thread_time()
    found = Constraints(lead).admitted(wide)
    assert time.thread_time() - start < 0.5
    assert len(found) == 10_000


def test_what_was_asked_before_is_remembered():
    constraints = Constraints(identity())
    one = constraints.admitted('{"ranks":["1"]}')

    assert constraints.admitted('{"ranks":["1"]}') is one


def test_constraints_of_many_waiting_jobs_are_evaluated_once():
    lead = identity("many-[0-9]")
    asked = [f'{{"ranks":["{number}"]}}' for number in range(10_000)]
    for _ in range(2):
        constraints = Constraints(lead)
        for text in asked:
            constraints.admitted(text)
    assert constraints._evaluator.mask.cache_info().misses == len(asked)
