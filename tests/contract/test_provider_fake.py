# SPDX-License-Identifier: MIT
"""FakeProvider keeps the contract, also when it is slow and eventually consistent."""

from __future__ import annotations

from burst.testing import FakeProvider
from tests.contract.fake_contract import FakeContract


class TestFakeProvider(FakeContract):
    pass


class TestEventuallyConsistentFakeProvider(FakeContract):
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
