# SPDX-License-Identifier: MIT
"""The page of a report as a browser draws it, at the widths of three screens."""

from __future__ import annotations

import pytest
from burst_report.page import render_report

from tests.plugins.report.chromium import measure, pdf_pages
from tests.plugins.report.report_answers import (
    MADE,
    nothing_yet,
    report_answer,
    report_burst,
    waiting_job,
)

pytestmark = [pytest.mark.programs, pytest.mark.chromium]
LONG = "projects/p/regions/europe-west4/quotas/" + "x" * 300


def worst():
    """A report of long words, where a page is as wide as it can get."""
    failed = [report_burst(f"burst-0-{LONG}", MADE, "failed", note=LONG) for _ in "12"]
    jobs = [waiting_job(name=LONG, why=LONG)]
    return report_answer(lead=f"ssh://{LONG}", bursts=failed, waiting=jobs)


@pytest.mark.parametrize(
    ("width", "dark", "answer"),
    [
        (375, False, report_answer()),
        (800, True, nothing_yet()),
        (1400, True, report_answer()),
    ],
)
def test_nothing_sticks_out(width, dark, answer, tmp_path):
    found = measure(render_report(answer), width, tmp_path, dark=dark)

    assert found["wide"] == []
    assert found["scrolls"] <= 0
    assert (found["bars"] > 0) == bool(answer["bursts"])
    ground = "rgb(18, 22, 28)" if dark else "rgb(255, 255, 255)"
    assert found["background"] == ground


def test_long_words_are_broken(tmp_path):
    found = measure(render_report(worst()), 375, tmp_path, dark=False)

    assert found["wide"] == []
    assert found["scrolls"] <= 0


def test_it_is_printed(tmp_path):
    assert pdf_pages(render_report(report_answer()), tmp_path) in range(1, 5)
