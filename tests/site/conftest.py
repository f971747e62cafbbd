# SPDX-License-Identifier: MIT
"""One site for a worker at a time, which is emptied between its tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.site.adopted import Adopted
from tests.site.workload import Answers
from tests.site.worlds import Kept, World, parameters


@pytest.fixture(scope="session")
def kept() -> Iterator[Kept]:
    """Give the site that this worker's tests have one after another."""
    kept = Kept()
    yield kept
    kept.end()


@pytest.fixture(params=list(parameters()))
def world(request: pytest.FixtureRequest) -> World:
    """Give each site with each mode that its scheduler allows."""
    found = request.param
    assert isinstance(found, World)
    return found


@pytest.fixture
def adopted(kept: Kept, world: World) -> Iterator[Adopted]:
    """Give a site that can burst; one that cannot be emptied is ended."""
    found, _ = kept.take(world)
    yield found
    try:
        found.empty()
    except (AssertionError, OSError, ValueError):
        kept.end()


@pytest.fixture
def before(kept: Kept, world: World, adopted: Adopted) -> Answers:
    """Give the answers to ordinary jobs, from before the site could burst."""
    assert adopted
    return kept.take(world)[1]
