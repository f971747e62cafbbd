# SPDX-License-Identifier: MIT
import socket
import sys

import pytest

from burst.errors import Refused
from burst.kits import tcp
from burst.model.finding import Level
from tests.support.commands import run_captured


def attempt(endpoint: str, python: str) -> tuple[int, str]:
    done = run_captured(tcp.command(endpoint, python))
    return done.returncode, done.stdout


@pytest.mark.parametrize("python", [sys.executable, "/no/python"])
def test_whether_a_lead_is_reached_is_tried_by_python_or_bash(python: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        found = tcp.judge(*attempt(endpoint, python), endpoint, "n1")
        assert (found.level, found.what) == (Level.OK, f"n1 reaches {endpoint}")
    found = tcp.judge(*attempt(endpoint, python), endpoint, "n1")
    assert found.level is Level.WRONG
    assert found.what == f"n1 does not reach {endpoint}: nothing listens there"


@pytest.mark.parametrize(
    ("status", "said", "level", "words"),
    [
        (2, "", Level.NOTE, "neither bash nor Python"),
        (1, "Connection timed out", Level.WRONG, "allow hosts there to connect"),
        (1, "Name or service not known", Level.WRONG, "that hosts there can resolve"),
        (1, "No route to host", Level.WRONG, "there is no route to it"),
        (127, "", Level.WRONG, "ended with exit status 127"),
        (1, "odd", Level.WRONG, "odd"),
    ],
)
def test_why_it_is_not_reached_is_said_with_what_to_do(
    status: int, said: str, level: Level, words: str
) -> None:
    found = tcp.judge(status, said, "tcp://h:1", "n1")
    assert found.level is level
    assert words in f"{found.what}; {found.advice}"
    assert found.advice


def test_silence_is_told_with_its_length() -> None:
    found = tcp.judge_silence(30, "tcp://h:1", "n1")
    assert found.what == "n1 does not reach tcp://h:1: there is no answer within 30 s"


@pytest.mark.parametrize("endpoint", ["", "tcp://h", "ipc:///x"])
def test_without_an_address_there_is_nothing_to_try(endpoint: str) -> None:
    with pytest.raises(Refused, match="set address and port"):
        tcp.command(endpoint)
