# SPDX-License-Identifier: MIT
import pytest

from burst.core.constraint import Constraints
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
        # What a user can write must eat neither our stack nor our memory.
        ('{"not":[' * 490 + '{"ranks":["0"]}' + "]}" * 490, set()),
        ('{"hostlist":["lead-0","n[0-99999]"]}', set()),
        ('{"hostlist":["lead-0","n[0-9999]"]}', {0}),
        ('{"ranks":["0","0-99999"]}', set()),
        ('{"ranks":["0-99999"]}', {0, 1, 2, 3, 4, 5}),
    ],
)
def test_evaluates_constraints_as_flux_does(constraint, ranks):
    lead = identity("lead-[0-1],burst-0-[0-3]")

    assert Constraints(lead).admitted(constraint) == ranks


def test_what_was_asked_before_is_remembered():
    constraints = Constraints(identity())
    one = constraints.admitted('{"ranks":["1"]}')

    assert constraints.admitted('{"ranks":["1"]}') is one
