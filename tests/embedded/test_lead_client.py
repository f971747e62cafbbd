# SPDX-License-Identifier: MIT
"""What the contract of a lead leaves open, for the embedded one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from burst_embedded.store import STORE
from burst_embedded.wire import PROTOCOL

from burst.config import IntakeSettings, Mode, Settings
from burst.errors import ConfigError, LeadGone, Unreadable
from burst.flux.identity import OWNER_KEY
from burst.lead import Queues, SchedulerHints
from burst.runtime.lead_upkeep import prepare_intake
from tests.contract.watching import Watch
from tests.embedded_instance import EmbeddedInstance, embedded_instance


@pytest.fixture(scope="module")
def instance() -> Iterator[EmbeddedInstance]:
    """One lead for all tests that do not end it, and leave no job that waits."""
    with embedded_instance() as instance:
        yield instance


def test_observe_needs_listen(instance: EmbeddedInstance) -> None:
    with (
        closing(instance.lead()) as lead,
        pytest.raises(Unreadable, match="call listen first"),
    ):
        lead.observe()


def test_it_is_honest_about_what_it_is_and_keeps_its_store_in_the_statedir(
    instance: EmbeddedInstance,
) -> None:
    with closing(instance.lead()) as lead:
        identity = lead.identity()
        lead.store().write({"a": "1"})
    assert (identity.kind, identity.version) == ("embedded", PROTOCOL)
    assert identity.owner.startswith("lead-0-")
    assert identity.statedir == str(instance.directory / "s")
    assert (instance.directory / "s" / STORE).is_file()


def test_without_a_statedir_the_store_is_in_the_rundir() -> None:
    with embedded_instance(statedir=False) as instance:
        with closing(instance.lead()) as lead:
            assert lead.identity().statedir == ""
            assert lead.store().load() == {OWNER_KEY: lead.identity().owner}
        assert (instance.directory / "r" / STORE).is_file()


def test_a_lead_that_hangs_is_gone_and_wakes(instance: EmbeddedInstance) -> None:
    process = instance.process("lead-0")
    with closing(instance.lead()) as lead:
        watch = Watch(lead)
        with watch.woken_by("a lead that hangs"):
            os.kill(process.pid, signal.SIGSTOP)
        try:
            with pytest.raises(LeadGone):
                lead.observe()
        finally:
            os.kill(process.pid, signal.SIGCONT)


def test_observing_wakes_nobody(instance: EmbeddedInstance) -> None:
    with closing(instance.lead()) as lead:
        watch = Watch(lead)
        watch.settle()
        woken = threading.Event()
        with closing(instance.lead()) as second:
            second.listen(woken.set)
            second.observe()
            woken.clear()
            for _ in range(5):
                lead.observe()
                second.observe()
                lead.store().write({"a": "1"})
            assert not woken.wait(0.3)


def test_it_has_neither_queues_nor_a_scheduler_that_takes_leases(
    instance: EmbeddedInstance,
) -> None:
    with closing(instance.lead()) as lead:
        prepare_intake(lead, Settings())
        assert not isinstance(lead, Queues | SchedulerHints)
        modes: tuple[Mode, ...] = ("queue", "scheduler")
        for mode in modes:
            with pytest.raises(ConfigError, match=r'set \[intake\] mode = "hold"'):
                prepare_intake(lead, Settings(intake=IntakeSettings(mode=mode)))
