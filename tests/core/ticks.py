# SPDX-License-Identifier: MIT
"""One tick of the core as tests call it: records and a world in, a plan out."""

from burst.core.records import Records
from burst.core.tick import run_tick
from burst.model.hold import Hold
from tests.builders import T0, settings
from tests.lifecycles import LEASE

ID = LEASE.id


def tick_once(seen, records=None, now=T0 + 100, **tables):
    return run_tick(records or Records(), seen, settings(**tables), now)


def recorded(*bursts, **fields):
    return Records(bursts={burst.id: burst for burst in bursts}, **fields)


def hold(state, urgency=16, since=T0):
    return Hold(urgency=urgency, state=state, since=since)
