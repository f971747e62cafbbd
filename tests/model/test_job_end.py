# SPDX-License-Identifier: MIT
"""How a job ended, by its events."""

import pytest

from burst.model.event import Event
from burst.model.job_end import JobEnd, end_of

CLEAN: tuple[str, dict[str, object]] = ("clean", {})


def told(*events: tuple[str, dict[str, object]]) -> JobEnd | None:
    named = [("submit", {}), *events]
    return end_of(Event(float(n), *event) for n, event in enumerate(named))


def exception(kind: str, severity: int = 0) -> tuple[str, dict[str, object]]:
    return ("exception", {"type": kind, "severity": severity, "note": "so it is"})


def finish(status: int) -> tuple[str, dict[str, object]]:
    return ("finish", {"status": status})


def test_a_job_that_has_not_ended_has_no_end() -> None:
    assert told(("start", {})) is None
    assert told(exception("cancel")) is None


@pytest.mark.parametrize(
    ("events", "result", "text"),
    [
        ([finish(0)], "completed", "it completed"),
        ([finish(256)], "failed", "it failed: exit status 1"),
        ([finish(9)], "failed", "it failed: ended by signal 9"),
        ([exception("burst")], "failed", "burst made it fail: so it is"),
        ([exception("cancel")], "canceled", "it was canceled: so it is"),
        ([exception("timeout")], "timeout", "it ended at its time limit: so it is"),
        ([exception("alloc")], "failed", "it failed: so it is"),
        ([exception("alloc", 7), finish(0)], "completed", "it completed"),
        (
            [exception("cancel"), exception("burst"), finish(15)],
            "canceled",
            "it was canceled: so it is",
        ),
    ],
)
def test_an_end_is_told_with_its_reason(events, result, text):
    end = told(*events, CLEAN)
    assert end is not None
    assert (end.result, end.text()) == (result, text)


def test_an_exception_without_a_note_is_told_too() -> None:
    end = told(("exception", {"type": "cancel", "severity": 0}), CLEAN)
    assert end == JobEnd("canceled", "cancel")
    assert end.text() == "it was canceled"


def test_what_took_its_nodes_comes_before_what_failed_by_that() -> None:
    note = "flux_job_event_watch_get: Function not implemented"
    end = JobEnd("failed", "exec", note)
    cause = "burst burst-0-aaaaaa: burst-0-1 was evicted"
    assert end.text(cause) == f"{cause}; it failed: {note}"
    assert end.text() == f"it failed: {note}"
