# SPDX-License-Identifier: MIT
import os
import signal

import pytest

from burst.demo.stop import Interrupted, Stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_story_at_its_next_pause(number):
    with Stop() as stop:
        stop.pause(0.0)
        os.kill(os.getpid(), number)

        with pytest.raises(Interrupted) as caught:
            stop.pause(0.0)

    assert caught.value.signum == number


def test_once_the_story_has_ended_a_signal_only_hurries():
    with Stop() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert not stop.hurried
        stop.end_story()
        assert not stop.hurried

        os.kill(os.getpid(), signal.SIGINT)

        stop.check()
        assert stop.hurried


def test_afterwards_signals_do_what_they_did_before():
    before = signal.getsignal(signal.SIGTERM)

    with Stop():
        assert signal.getsignal(signal.SIGTERM) != before

    assert signal.getsignal(signal.SIGTERM) == before
