# SPDX-License-Identifier: MIT
import json
import logging

from burst import log
from burst.model.event import Event


def test_an_event_is_a_line_for_people(capsys):
    log.start("text")

    log.event(Event(0.0, "join", {"ranks": "4-7", "note": "two words"}), "burst-0-aa")
    log.event(Event(0.0, "online"))
    log.say("reloaded %s", "burst.toml")

    lines = capsys.readouterr().err.splitlines()
    assert lines[0].split(" ", 1)[1] == 'burst-0-aa join ranks=4-7 note="two words"'
    assert lines[1].split(" ", 1)[1] == "online"
    assert lines[2].split(" ", 1)[1] == "reloaded burst.toml"


def test_what_somebody_wrote_starts_no_line_and_moves_no_cursor(capsys):
    log.start("text")

    log.event(Event(0.0, "job", {"why": "no\nsuch \x1b[2J", "state": "é"}), "f1")
    log.say("%s", "two\nlines")

    lines = capsys.readouterr().err.splitlines()
    assert lines[0].split(" ", 1)[1] == 'f1 job why="no\\nsuch \\x1b[2J" state=é'
    assert lines[1].split(" ", 1)[1] == "two\\nlines"


def test_an_event_is_an_rfc_18_line_for_programs(capsys):
    log.start("json")

    log.event(Event(5.0, "join", {"ranks": "4-7"}), "burst-0-aa")
    log.event(Event(5.0, "start"))
    log.say("careful", level=logging.WARNING)

    first, second, third = map(json.loads, capsys.readouterr().err.splitlines())
    assert first == {
        "timestamp": 5.0,
        "name": "join",
        "context": {"about": "burst-0-aa", "ranks": "4-7"},
    }
    assert second["context"] == {}
    assert third["name"] == "warning"
    assert third["context"] == {"text": "careful"}


def test_what_was_not_expected_shows_its_traceback(capsys):
    log.start("text")
    try:
        int("x")
    except ValueError:
        log.failure("provider %s raised", "p")

    text = capsys.readouterr().err
    assert "provider p raised" in text
    assert "Traceback" in text


def test_only_what_is_as_grave_as_asked_for_is_shown(capsys):
    log.start("text", "warning")
    log.say("detail")
    assert capsys.readouterr().err == ""
    log.start("text")
    log.say("detail")
    assert "detail" in capsys.readouterr().err
