# SPDX-License-Identifier: MIT
"""FakeProvider keeps the contract, also when it is slow and eventually consistent."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from burst.provider import BurstId, BurstSpec
from burst.testing import FakeCloud, FakeProvider, Trial, example_lead, example_spec
from burst.testing.trial import TrialTiming
from tests.contract.fake_contract import FakeContract


class StartsLateOnce(FakeProvider):
    """The lease of its first burst is over before anybody sees it run."""

    def provision(self, spec: BurstSpec) -> None:
        if spec.lease_end and not self.cloud.begun:
            time.sleep(2 * TestEventuallyConsistentFakeProvider.lease)
        super().provision(spec)


class NotesWhatIsToEnd(FakeProvider):
    """A burst ends once its cloud is reached, though its `reap` has raised."""

    ends_after = 5

    def reap(self, burst_id: BurstId) -> None:
        burst = self._mine().get(burst_id)
        if burst and not self.cloud.reachable:
            burst.ends_in = self.ends_after
        super().reap(burst_id)


class TestFakeProvider(FakeContract):
    pass


class TestFakeProviderThatNotesWhatIsToEnd(FakeContract):
    kind = NotesWhatIsToEnd


class Stubborn(FakeProvider):
    """Never ends one of its bursts."""

    keeps = ""

    def reap(self, burst_id: BurstId) -> None:
        if burst_id != self.keeps:
            super().reap(burst_id)


def test_a_burst_that_cannot_be_reaped_keeps_no_other(tmp_path: Path) -> None:
    cloud, lead = FakeCloud(), example_lead(tmp_path)
    provider = Stubborn(cloud=cloud, owner=lead.owner)
    trial = Trial(provider, TrialTiming(0.1, 0.01, 60.0))
    specs = [
        example_spec(lead, number, provider.offers()[0].name) for number in (0, 1, 2)
    ]
    for spec in specs:
        trial.provision(spec)
    provider.keeps = specs[1].burst_id
    with pytest.raises(pytest.fail.Exception, match=f"last reap of {provider.keeps}"):
        trial.close()
    assert [burst.spec for burst in cloud.bursts.values()] == [specs[1]]


class TestEventuallyConsistentFakeProvider(FakeContract):
    kind = StartsLateOnce
    lease = 0.05

    def tune(self, provider: FakeProvider) -> FakeProvider:
        provider.listed_after = 3
        provider.starts_after = 2
        provider.ends_after = 4
        provider.listed_still = 3
        return provider


class TestFakeProviderThatLosesAnswers(FakeContract):
    def tune(self, provider: FakeProvider) -> FakeProvider:
        provider.next_answer_lost = True
        return provider
