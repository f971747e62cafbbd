# SPDX-License-Identifier: MIT
"""The provider contract can fail: each broken provider fails the test of its word."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from burst.testing import FakeCloud, FakeProvider
from burst.testing.contract import Begin, Count, MakeProvider
from burst.testing.trial import Trial, TrialTiming
from tests.contract import broken_providers
from tests.contract.broken_providers import BROKEN
from tests.contract.fake_contract import FakeContract


class Broken(FakeContract):
    # Most of them use these up, and nothing depends on a stall: what is to fail fails.
    patience = 0.4
    pause = 0.01
    prompt = 60.0
    lease = 0.2

    @pytest.fixture
    def cloud(self, request: pytest.FixtureRequest) -> FakeCloud:
        cloud = FakeCloud(clock=time.time)
        if "two_bursts_at_a_time" in request.node.name:
            cloud.__dict__["together"] = threading.Barrier(2)
        return cloud

    @pytest.fixture
    def begin(
        self, make_provider: MakeProvider, count: Count | None
    ) -> Iterator[Begin]:
        """Reap nothing at the end: it may be what they cannot do."""
        timing = TrialTiming(self.patience, self.pause, self.prompt)
        trials: list[Trial] = []

        def begin_one(owner: str, make: MakeProvider = make_provider) -> Trial:
            trials.append(Trial(make(owner), timing, count))
            return trials[-1]

        yield begin_one
        for trial in trials:
            trial.given.clear()
            trial.close()


OWN_TIMES: dict[type[FakeProvider], dict[str, float]] = {
    broken_providers.EndsBeforeItsLease: {"lease": 60.0},
    broken_providers.WaitsForProgress: {"prompt": 0.5},
    broken_providers.WaitsUntilItRuns: {"prompt": 0.5},
    broken_providers.WaitsUntilItIsGone: {"prompt": 0.5},
    broken_providers.WaitsUntilItHasGrown: {"prompt": 5.0},
}
"""Of those that use `prompt` up, and of one that does not use up its lease."""


def must_fail(test: Callable[..., None], only: str) -> Callable[..., None]:
    """Return the test turned round, of its parameters only this one, by its id."""

    @functools.wraps(test)
    def turned_round(*given: Any, **fixtures: Any) -> None:
        with pytest.raises((Exception, pytest.fail.Exception)):
            test(*given, **fixtures)

    turned_round.__dict__["pytestmark"] = [
        _narrowed(mark, only) if mark.name == "parametrize" else mark
        for mark in getattr(test, "pytestmark", [])
    ]
    return turned_round


def _narrowed(parametrized: pytest.Mark, only: str) -> pytest.Mark:
    name, values = parametrized.args
    chosen = [value for value in values if str(value) == only]
    assert chosen, f"{name} is never {only}"
    return pytest.mark.parametrize(name, chosen).mark


for _kind, _caught_by in BROKEN.items():
    _test, _, _only = f"test_{_caught_by}".removesuffix("]").partition("[")
    _fields: dict[str, Any] = dict.fromkeys(
        name for name in dir(Broken) if name.startswith("test_")
    )
    _fields[_test] = must_fail(getattr(Broken, _test), _only)
    _fields |= {"kind": _kind, **OWN_TIMES.get(_kind, {})}
    _class = f"Test{_kind.__name__}"
    globals()[_class] = type(_class, (Broken,), _fields)


def test_each_broken_provider_has_to_fail_a_test() -> None:
    module = vars(broken_providers).values()
    classes = {each for each in module if isinstance(each, type)}
    ours = {each for each in classes if each.__module__ == broken_providers.__name__}
    bases = {broken_providers.Retelling, broken_providers.SellingAnyNumber}
    assert ours - bases == BROKEN.keys()
