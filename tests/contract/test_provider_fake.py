# SPDX-License-Identifier: MIT
"""FakeProvider keeps the contract, also when it is slow and eventually consistent."""

from __future__ import annotations

import time

from burst.provider import BurstSpec
from burst.testing import FakeProvider
from tests.contract.fake_contract import FakeContract


class StartsLateOnce(FakeProvider):
    """The lease of its first burst is over before anybody sees it run."""

    def provision(self, spec: BurstSpec) -> None:
        if spec.lease_end and not self.cloud.begun:
            time.sleep(2 * TestEventuallyConsistentFakeProvider.lease)
        super().provision(spec)


class TestFakeProvider(FakeContract):
    pass


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
