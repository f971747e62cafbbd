# SPDX-License-Identifier: MIT
"""What a terminal shows while a command waits, and that Ctrl-C ends it."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from burst_embedded.handle import CONNECT_S

from burst.cli.progress import WAIT_S
from burst.model.exit_status import INTERRUPTED
from tests.cli.cli_harness import BURST, CliHarness
from tests.contract.instance import HOSTS
from tests.embedded_instance import EmbeddedInstance
from tests.support.terminal import TerminalScreen, on_terminal
from tests.support.waiting import HANG_S

HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"
CONNECTING = "connecting to the lead"


@contextmanager
def stopped(instance: EmbeddedInstance) -> Iterator[Callable[[], None]]:
    """Have the lead answer nothing, as one that hangs; yield what has it go on."""
    lead = instance.process(HOSTS[0])
    lead.send_signal(signal.SIGSTOP)
    try:
        yield lambda: lead.send_signal(signal.SIGCONT)
    finally:
        lead.send_signal(signal.SIGCONT)


@contextmanager
def typed(cli: CliHarness, *words: str) -> Iterator[TerminalScreen]:
    argv = [BURST, *words, "-c", str(cli.config), "--uri", cli.uri]
    with on_terminal(argv, {}) as screen:
        yield screen


def is_restored(screen: TerminalScreen) -> bool:
    text = screen.text
    return text.rindex(SHOWN) > text.rindex(HIDDEN) and "Traceback" not in text


@pytest.mark.parametrize("command", ["doctor", "status"])
def test_what_is_waited_for_is_shown_and_ctrl_c_ends_it(
    instance: EmbeddedInstance, cli: CliHarness, command: str
) -> None:
    # Several times: the kernel chooses the thread that takes the signal.
    for _ in range(3):
        with stopped(instance), typed(cli, command) as screen:
            screen.shows(CONNECTING)
            pressed = time.monotonic()
            screen.press("\x03")
            assert screen.ended() == INTERRUPTED
            # It did not wait until the client gives up.
            assert time.monotonic() - pressed < CONNECT_S / 2
            assert "Aborted" not in screen.text
            assert is_restored(screen)


def test_it_goes_once_there_is_an_answer(
    instance: EmbeddedInstance, cli: CliHarness
) -> None:
    with stopped(instance) as go_on, typed(cli, "plan") as screen:
        screen.shows(CONNECTING)
        go_on()
        screen.shows("nothing to burst")
        assert screen.ended() == 0
        assert is_restored(screen)
        assert CONNECTING not in screen.text.partition("nothing to burst")[2]


def test_elsewhere_than_on_a_terminal_nothing_is_written(
    instance: EmbeddedInstance, cli: CliHarness
) -> None:
    argv = [BURST, "plan", "-c", str(cli.config), "--uri", cli.uri]
    with stopped(instance):
        command = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        time.sleep(1.2 * WAIT_S)
    stdout, stderr = command.communicate(timeout=HANG_S)
    assert (command.returncode, stderr) == (0, "")
    assert "nothing to burst" in stdout
    assert "\x1b" not in stdout
