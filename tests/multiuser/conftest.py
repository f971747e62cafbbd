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
    """A system instance for each configuration of a lead, lent to one test at a time.

    One that cannot be emptied after a test is ended.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._kept: dict[str, tuple[SystemInstance, Fresh]] = {}

    def take(self, extra: Mapping[str, Any]) -> SystemInstance:
        """Return one with these tables."""
        if repr(extra) not in self._kept:
            instance = SystemInstance(self._lab, extra)
            instance.start()
            if extra == CONFINING["scheduler"]:
                load_scheduler(instance)
            self._kept[repr(extra)] = instance, Fresh(instance)
        return self._kept[repr(extra)][0]

    def give_back(self, extra: Mapping[str, Any]) -> None:
        """Empty it."""
        instance, fresh = self._kept.pop(repr(extra))
        try:
            fresh.restore()
            instance.write_settings()
        except (OSError, AssertionError, KeyError, ValueError):
            instance.end()
        else:
            self._kept[repr(extra)] = instance, fresh

    def end(self) -> None:
        """End all of them."""
        for instance, _ in self._kept.values():
            instance.end()


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """Give a lab; all that runs in it is killed when the session ends."""
    with Lab() as lab:
        yield lab


@pytest.fixture(scope="session")
def instances(lab: Lab) -> Iterator[Instances]:
    """Give the instances of the lab."""
    instances = Instances(lab)
    yield instances
    instances.end()


@pytest.fixture
def system(instances: Instances, extra: Mapping[str, Any]) -> Iterator[SystemInstance]:
    """Give a system instance of the lab's users."""
    yield instances.take(extra)
    instances.give_back(extra)
