# SPDX-License-Identifier: MIT
"""Colours of commands, on a real terminal."""

from __future__ import annotations

from burst.model.jobid import format_f58
from burst.model.lead import JobState
from tests.cli.cli_harness import BURST
from tests.cli.conftest import Shared
from tests.contract.instance import SLEEP
from tests.support.terminal import on_terminal
from tests.support.waiting import wait_until


def test_status_and_explain_have_colours_on_a_terminal_alone(shared: Shared) -> None:
    instance, cli, _ = shared
    job = instance.submit(nodes=2, command=SLEEP)
    wait_until(lambda: instance.info(job).state is JobState.RUN, "the job to run")

    def online() -> list[str]:
        return [b["id"] for b in cli.status()["bursts"] if b["state"] == "online"]

    # A job may start before the daemon tells that its burst is online.
    wait_until(online, "the burst to be online")
    burst, *_ = online()
    for words in (["status"], ["explain", format_f58(job)]):
        argv = [BURST, *words, "-c", str(cli.config), "--uri", cli.uri]
        with on_terminal(argv, {}) as screen:
            assert screen.ended() == 0
        with on_terminal(argv, {"NO_COLOR": "1"}) as plain:
            assert plain.ended() == 0
        assert "\x1b[32m" in screen.text
        assert "\x1b[3" not in plain.text
        assert "\x1b" not in cli.run(*words).stdout
    instance.cancel(job)
    cli.run("down", burst)
