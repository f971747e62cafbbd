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
_GUEST = {"FLUX_HANDLE_USERID": "1234", "FLUX_HANDLE_ROLEMASK": "0x2"}


@pytest.fixture
def cli(instance: FluxInstance) -> Iterator[CliHarness]:
    with open_harness(instance) as cli, cli.daemon():
        yield cli


def test_it_is_watched_through_a_proxy(cli: CliHarness, instance: FluxInstance) -> None:
    job = instance.flux("submit", "-N2", "--setattr=burstable", "sleep", "300").strip()
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
        at = screen.press("qdn")
        screen.shows("is left as it is", at)
        screen.press("q")
        assert screen.ended() == 0
        assert screen.settings() == screen.before
    instance.flux("cancel", job)


def test_a_guest_watches_his_own(cli: CliHarness, instance: FluxInstance) -> None:
    job = instance.flux("submit", "-N2", "--setattr=burstable", "sleep", "300").strip()
    argv = [BURST, "watch", "-c", str(cli.config), "--uri", cli.uri]
    with on_terminal(argv, {}) as screen:
        screen.shows("online")
        screen.press("q")
        assert screen.ended() == 0
    with on_terminal(argv, _GUEST) as screen:
        screen.shows("0 bursts; 0 of 8 nodes; 0 jobs may burst")
        screen.press("q")
        assert screen.ended() == 0
    assert job not in screen.text
    assert "burst-0-" not in screen.text.partition("SLOT")[0]
    instance.flux("cancel", job)
