# SPDX-License-Identifier: MIT
"""Reports of agents: what is refused, and in which order they are taken."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from burst_ensemble.http.routes import RequestRefused
from burst_ensemble_agent.report import (
    JOBS_MOST,
    REPORT_VERSION,
    AgentReport,
    TakenReport,
    check_order,
    read_report,
)

from tests.plugins.ensemble_agent.agents import NOW, report

ROW = [7, "run", "step", 1, 16, 1.0]


def encoded(**changes: Any) -> bytes:
    return msgspec.json.encode({**msgspec.to_builtins(report()), **changes})


WRONG: list[tuple[bytes, str]] = [
    (b"", "not a report"),
    (b"\xff\xfe", "not a report"),
    (b"[" * 100_000, "not a report"),
    (b"{}", "not a report"),
    (encoded(version=REPORT_VERSION + 1), "version 5, and the daemon knows version 4"),
    (encoded(jobs=[ROW] * (JOBS_MOST + 1)), "not a report"),
    (encoded(jobs=[[7, "run", "", 0, 16, 1.0]]), "not a report"),
    (encoded(submitted={f"n{n}": n for n in range(401)}), "not a report"),
    (encoded(nodes={"up": -1, "free": 0, "cores_up": 0, "cores_free": 0}), "not a"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[1])
def test_what_is_no_report_is_refused(case: tuple[bytes, str]) -> None:
    body, what = case
    with pytest.raises(RequestRefused) as caught:
        read_report(body)
    assert what in caught.value.what
    assert caught.value.status == 400


def taken(made: AgentReport) -> TakenReport:
    return TakenReport(NOW, NOW + 60, made)


@pytest.mark.parametrize("number", [1, 3])
def test_a_stale_report_is_refused(number: int) -> None:
    first = report(number=3)
    with pytest.raises(RequestRefused, match="stale") as caught:
        check_order(report(number=number), taken(first), "", NOW)
    assert caught.value.status == 409
    check_order(report(number=4), taken(first), "flux-1", NOW)
    check_order(report(began=11.0, number=1), taken(first), "", NOW)


def test_an_agent_that_was_replaced_is_refused_until_the_other_is_silent() -> None:
    old = report(began=9.0, number=9)
    with pytest.raises(RequestRefused, match="stale"):
        check_order(old, taken(report()), "", NOW + 60)
    check_order(old, taken(report()), "", NOW + 61)


@pytest.mark.parametrize("last", [None, taken(report())])
def test_another_instance_is_refused(last: TakenReport | None) -> None:
    foreign = report(instance="flux-2", number=9)
    with pytest.raises(RequestRefused, match="jobs are submitted to only one"):
        check_order(foreign, last, "flux-1", NOW + 1000)
