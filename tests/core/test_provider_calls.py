# SPDX-License-Identifier: MIT
"""When a provider is called for a burst, and when it is called again."""

import msgspec
import pytest

from burst.core.provider_calls import may_call
from burst.core.provider_health import Outcome, Verb
from burst.core.records import Records, Transaction
from burst.core.world import LastCall
from tests.builders import T0, view, world
from tests.lifecycles import run

PROVISION, REAP = Verb.PROVISION, Verb.REAP


@pytest.mark.parametrize(
    ("last", "verb", "may"),
    [
        (None, PROVISION, True),
        (LastCall(verb=PROVISION), PROVISION, False),
        (LastCall(verb=PROVISION), REAP, False),
        (LastCall(verb=PROVISION, outcome=Outcome.OK), PROVISION, False),
        (LastCall(verb=PROVISION, outcome=Outcome.OK, retry_at=T0 + 9), REAP, True),
        (
            LastCall(verb=PROVISION, outcome=Outcome.TRANSIENT, retry_at=T0 + 1),
            PROVISION,
            False,
        ),
        (
            LastCall(verb=PROVISION, outcome=Outcome.TRANSIENT, retry_at=T0),
            PROVISION,
            True,
        ),
        (LastCall(verb=REAP, outcome=Outcome.OK, done_at=T0), REAP, False),
        (LastCall(verb=REAP, outcome=Outcome.OK, done_at=T0 - 9), REAP, True),
    ],
)
def test_it_is_not_called_while_it_is_nor_before_it_may_be_again(last, verb, may):
    burst = run("provision-start")
    calls = {burst.id: last} if last else {}
    seen = msgspec.structs.replace(world(view()), calls=calls)
    tx = Transaction(Records(bursts={burst.id: burst}), T0)
    assert may_call(tx, burst, seen, verb) is may
    elsewhere = msgspec.structs.replace(seen, providers={})
    assert not may_call(tx, burst, elsewhere, verb)
