# SPDX-License-Identifier: MIT
"""Contract of what is left of a client when its lead ends."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from burst.errors import LeadGone, Unreadable
from burst.lead import Lead, OrderlyEnd
from burst.model.jobid import JobId
from tests.contract.base import WithInstance
from tests.contract.instance import LastingInstance
from tests.contract.serving import HOLDER, answer
from tests.contract.storing import LARGE, kept
from tests.contract.watching import Watch
from tests.support.waiting import HANG_S


def until_gone(lead: Lead) -> None:
    """Return once observe raises LeadGone; fail at the deadline."""
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        try:
            lead.observe()
        except LeadGone:
            return
        except Unreadable:
            continue
    pytest.fail("the lead is gone and observe does not say so")


class LossContract(WithInstance):
    @pytest.mark.parametrize("end", ["stop", "kill"])
    def test_the_end_of_the_lead_wakes_and_is_said_and_what_it_kept_outlives_it(
        self, end: str, instance: LastingInstance, watch: Watch
    ) -> None:
        assert isinstance(watch.lead, OrderlyEnd)
        assert not watch.lead.shuts_down()
        owner = watch.lead.identity().owner
        watch.lead.store().write({"burst/gone": "x", "burst/large": LARGE})
        watch.lead.store().write({"burst/gone": None})
        with watch.woken_by("the end of the lead"):
            instance.stop() if end == "stop" else instance.kill()
        until_gone(watch.lead)
        assert watch.lead.shuts_down() == (end == "stop")
        instance.start()
        with closing(instance.lead()) as after:
            assert after.identity().owner == owner
            assert kept(after) == {"burst/large": LARGE}

    def test_every_call_says_that_the_lead_is_gone_until_a_new_client_goes_on(
        self, instance: LastingInstance, watch: Watch
    ) -> None:
        lead = watch.lead
        lead.serve(answer, HOLDER)
        identity = lead.identity()
        store = lead.store()
        instance.kill()
        for call in (
            lead.observe,
            lambda: lead.hold([JobId(1)]),
            lambda: lead.release({JobId(1): 16}),
            lambda: lead.write_memos({JobId(1): {"a": 1}}),
            lambda: lead.fail_job(JobId(1), "gone"),
            lambda: lead.cancel_job(JobId(1), "gone"),
            lambda: lead.drain(frozenset({2}), "gone"),
            lambda: lead.undrain(frozenset({2})),
            lambda: lead.call("echo", {}),
            store.load,
            lambda: store.write({"burst/x": "1"}),
        ):
            with pytest.raises(Unreadable):
                call()
        until_gone(lead)
        assert lead.identity() == identity
        with pytest.raises(LeadGone):
            instance.lead()
        lead.close()
        instance.start()
        with closing(instance.lead()) as new:
            again = Watch(new)
            job = instance.submit(nodes=4)
            again.until(lambda view: job in view.jobs, "the new job")
            new.serve(answer, HOLDER)
