# SPDX-License-Identifier: MIT
"""One lab for the tests here, and system instances that are emptied between tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.flux_pool import Fresh
from tests.intake.modes import CONFINING
from tests.multiuser.apart import load_scheduler
from tests.multiuser.lab import Lab
from tests.multiuser.system_instance import SystemInstance


class Instances:
    """A system instance, lent to one test at a time with the tables that it wants.

    One that cannot be emptied after a test is ended.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._kept: tuple[SystemInstance, Fresh] | None = None

    def take(self, extra: Mapping[str, Any]) -> SystemInstance:
        """Return it with these tables, which it reads while it runs."""
        if self._kept is None:
            instance = SystemInstance(self._lab)
            instance.start()
            self._kept = instance, Fresh(instance)
        instance, _ = self._kept
        try:
            if extra:
                instance.reload_config(extra)
            if extra == CONFINING["scheduler"]:
                load_scheduler(instance)
        except BaseException:
            self.end()
            raise
        return instance

    def give_back(self) -> None:
        """Empty it."""
        assert self._kept is not None
        instance, fresh = self._kept
        try:
            fresh.restore()
            instance.write_settings()
        except (OSError, AssertionError, KeyError, ValueError):
            self.end()

    def end(self) -> None:
        """End it."""
        if self._kept is not None:
            self._kept[0].end()
            self._kept = None


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """Give a lab; all that runs in it is killed when the session ends."""
    with Lab() as lab:
        yield lab


@pytest.fixture(scope="session")
def instances(lab: Lab) -> Iterator[Instances]:
    """Give the instance of the lab."""
    instances = Instances(lab)
    yield instances
    instances.end()


@pytest.fixture
def system(instances: Instances, extra: Mapping[str, Any]) -> Iterator[SystemInstance]:
    """Give a system instance of the lab's users."""
    yield instances.take(extra)
    instances.give_back()
