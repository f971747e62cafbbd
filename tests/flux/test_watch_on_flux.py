# SPDX-License-Identifier: MIT
"""`burst watch` of a real Flux: through `flux proxy`, and as a guest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.cli_harness import BURST, CliHarness, open_harness
from tests.flux_instance import FLUX, FluxInstance
from tests.support.terminal import on_terminal
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux


@pytest.fixture
def cli(instance: FluxInstance) -> Iterator[CliHarness]:
    with open_harness(instance) as cli, cli.daemon():
        yield cli


def test_it_is_watched_through_a_proxy(cli: CliHarness, instance: FluxInstance) -> None:
    job = instance.flux("submit", "-N2", "--setattr=burstable", "sleep", "inf").strip()
    argv = [FLUX, "proxy", cli.uri, BURST, "watch", "-c", str(cli.config)]
    with on_terminal(argv, {}) as screen:
        # What Enter shows is read once.
        wait_until(
            lambda: any(
                f"job {job} runs" in cli.run("explain", burst["id"]).stdout
                for burst in cli.status()["bursts"]
            ),
            "its start to be recorded",
        )
        screen.shows("online")
        at = screen.press("\r")
        screen.shows(f"job {job} runs", at)
        at = screen.press("qd")
        screen.shows("Take ", at)
        at = screen.press("n")
        screen.shows("is left as it is", at)
        screen.press("q")
        assert screen.ended() == 0
        assert screen.settings() == screen.before
    instance.flux("cancel", job)
