# SPDX-License-Identifier: MIT
"""The sites that tests have: each scheduler, and each intake mode that some allow.

They differ in more than that, so that each shape of a configuration is met by some.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.flux.real_accounting import INSTALLED as HAS_ACCOUNTING
from tests.site import fluxion
from tests.site.adopted import Adopted
from tests.site.site import SIMPLE, Site, SiteShape
from tests.site.workload import Answers, run_workload
from tests.support.fluxion import MISSING, QMANAGER, RESOURCE

_FCFS_IN_DEBUG = {
    QMANAGER: {"queue-policy": "easy", "queue-policy-per-queue": "debug:fcfs"}
}
_WHOLE_NODES = {RESOURCE: {"match-format": "rv1_nosched", "match-policy": "lonodex"}}
_BY_SITE = {"ingest": {"validator": {"plugins": ["jobspec"]}}}
"""Without `feasibility`: in mode hold it would refuse what is for lent nodes."""


class World(msgspec.Struct, frozen=True):
    """A site and the intake mode of ours there."""

    name: str
    mode: str
    shape: SiteShape


WORLDS = (
    World("simple-scheduler", "scheduler", SiteShape()),
    World("simple-queue", "queue", SiteShape(r_in_a_file=True)),
    World("simple-hold", "hold", SiteShape(tables=_BY_SITE)),
    World(
        "easy-queue",
        "queue",
        SiteShape(scheduler="easy", accounting=HAS_ACCOUNTING, tables=_FCFS_IN_DEBUG),
    ),
    World(
        "easy-hold",
        "hold",
        SiteShape(scheduler="easy", head_excluded=True, tables=_BY_SITE),
    ),
    World(
        "conservative-queue",
        "queue",
        SiteShape(scheduler="conservative", tables=_WHOLE_NODES),
    ),
    World("fcfs-queue", "queue", SiteShape(scheduler="fcfs")),
)


def parameters() -> Iterator[Any]:
    """Yield the worlds as pytest's parameters; tests of one stay in one worker."""
    for world in WORLDS:
        lacks = world.shape.scheduler != SIMPLE and not fluxion.INSTALLED
        marks = [pytest.mark.xdist_group(world.name)]
        if lacks:
            marks.append(pytest.mark.skip(reason=f"want of Fluxion: {MISSING}"))
        yield pytest.param(world, id=world.name, marks=marks)


def named(*names: str) -> list[object]:
    """Return some of them, as parameters of a test that is for these alone."""
    return [each for each in parameters() if each.id in names]


class Kept:
    """The site that a worker's tests have, until they want another."""

    def __init__(self) -> None:
        self._world: World | None = None
        self._site: Site | None = None
        self._found: tuple[Adopted, Answers] | None = None

    def take(self, world: World) -> tuple[Adopted, Answers]:
        """Return an adopted site, and the answers to ordinary jobs before that."""
        if world != self._world or self._found is None:
            self.end()
            self._world, self._site = world, Site(world.shape)
            answers = run_workload(self._site)
            adopted = Adopted(self._site)
            adopted.adopt(world.mode)
            self._found = adopted, answers
        return self._found

    def end(self) -> None:
        """End it: the next test gets a new one."""
        if self._site is not None:
            self._site.close()
        self._site = self._found = None
