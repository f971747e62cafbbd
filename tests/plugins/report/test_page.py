# SPDX-License-Identifier: MIT
"""The page of a report: what it tells, and that it is HTML whatever others wrote."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from burst_report.figures import quantile
from burst_report.page import render_report
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.plugins.report.report_answers import (
    MADE,
    NOW,
    budget,
    costs,
    nothing_yet,
    report_answer,
    report_burst,
    report_job,
    waiting_job,
)

_VOID = {"meta", "rect"}


class PageReader(HTMLParser):
    """Reads a page as a browser does, and remembers its elements and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def read(answer=None, **changes):
    page = PageReader(render_report(answer or report_answer(**changes)))
    assert page.open == []
    return page


@pytest.mark.parametrize(
    "told",
    [
        "4 bursts",
        "1 of them live",
        "2 of them failed, late or reclaimed",
        "36.25 settled",
        "burst-0-aaaaaa gke/n2, 4 nodes completed",
        "waited 2m00s, ran 16m40s",
        "4 jobs on record started on bursts: half of them within 2m00s",
        "For 3 of them, it was forecast",
        "where 1h00m was expected. Together they waited 1h54m less than that",
        "gke/n2: no rank slot has 9 nodes",
        "2023-11-14 22:14:20",
        "42.50 is reserved for live bursts",
        "size/3 55 80 % 95 %",
        "gke/n2 1m32s 2m21s 28",
        'quota "C4" < 24 & full',
        "kube no quota",
        "3 earlier bursts are left out",
    ],
)
def test_the_page_tells_it(told):
    answer = report_answer()
    answer["cost"]["months"] = answer["cost"]["months"][1:]
    assert told in read(answer).text


def test_a_page_of_nothing_says_so():
    text = read(nothing_yet()).text

    assert "all that is on record" in text
    assert "There was no burst." in text
    assert "No job has started on a burst." in text
    assert "Nothing was settled or reserved" in text
    assert "No forecast of a start on own nodes has an outcome yet." in text
    assert "No burst failed, was late or was reclaimed." in text
    assert "Jobs that wait now" not in text


def test_what_is_not_known_is_not_told_as_nought():
    text = read(jobs=[report_job(here=None)]).text

    assert "No forecast of when they would have started here is on record." in text
    assert "median wait that was expected here" not in text


def test_bursts_without_jobs_are_drawn_alone():
    page = read(jobs=[])

    assert "4 bursts provider called" in page.text
    assert "waits runs" not in page.text
    assert "waits runs" in read().text


def test_a_job_that_ran_nowhere_is_drawn_until_it_left():
    gone = report_job(started=None, finished=None, result=None, left=MADE + 110)

    told = read(jobs=[gone]).text

    assert "not run on a burst" in told
    assert "waited 2m" in told


def test_a_page_that_is_live_is_loaded_again():
    assert "refresh" not in render_report(report_answer())
    page = PageReader(render_report(report_answer(), refresh=30))
    (found,) = [a for _, a in page.elements if a.get("http-equiv") == "refresh"]
    assert found["content"] == "30"


def test_nothing_is_fetched_and_no_script_is_run():
    page = render_report(report_answer())
    reader = PageReader(page)
    names = {name for name, _ in reader.elements}

    assert names.isdisjoint({"script", "link", "img", "iframe", "object", "a", "form"})
    assert not any(k.startswith("on") for _, attrs in reader.elements for k in attrs)
    assert "url(" not in page
    assert "@import" not in page
    policy = next(a["content"] for _, a in reader.elements if "content" in a)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


EVIL = (
    "\"><script>alert(1)</script><img src=x onerror=alert(1)>\x00\x1b[2J</style>'&amp;"
)


def texts_replaced(value, text):
    """Return an answer in which each text that others write is another one."""
    ours = {"state", "result", "month", "by", "since"}
    if isinstance(value, dict):
        return {
            key: each if key in ours else texts_replaced(each, text)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [texts_replaced(each, text) for each in value]
    return text if isinstance(value, str) else value


def shape(page):
    return [(name, sorted(attrs)) for name, attrs in page.elements]


HARMLESS = shape(read(texts_replaced(report_answer(), "x")))


@settings(max_examples=30)
@given(st.text(min_size=1, max_size=40))
@example(EVIL)
def test_any_text_is_shown_as_text(text):
    shown = read(texts_replaced(report_answer(), text))
    assert shape(shown) == HARMLESS
    assert text != EVIL or "alert(1)" in shown.text


def bars(page):
    return [a for name, a in page.elements if name == "rect"]


def test_bars_are_on_the_scale_and_none_is_too_thin_to_see():
    page = read(bursts=[report_burst(made=NOW - 90 * 86_400), report_burst(made=MADE)])

    assert bars(page)
    for rect in bars(page):
        left, width = float(rect["x"] or "nan"), float(rect["width"] or "nan")
        assert left >= 0.0
        assert width >= 2.0
        assert left + width <= 1000.01


def test_many_bursts_are_counted_and_the_last_are_drawn():
    many = [report_burst(f"burst-0-{n:06}", MADE + n) for n in range(500)]
    page = render_report(report_answer(bursts=many))

    assert "The last 60 of 500 bursts" in page
    assert "burst-0-000499" in page
    assert len(page) < 200_000


def test_many_failures_are_counted_and_the_latest_are_listed():
    many = [report_burst(f"burst-{n:03}", MADE + n, "failed") for n in range(150)]
    text = read(bursts=many).text

    assert "50 earlier ones are left out" in text
    assert "150 of gke failed" in text


def test_a_month_without_costs_and_a_budget_without_warning_are_shown():
    quiet = costs(budgets=[budget(warns=False)], rows=[], left_out=4)
    for month in quiet["months"]:
        month.update(dict.fromkeys(month.keys() - {"month", "reserved"}, 0.0))
    text = read(cost=quiet, waiting=[waiting_job(expected=None)]).text

    assert "nothing settled" in text
    assert "not known" in text
    assert "4 earlier bursts are left out" in text


@pytest.mark.parametrize(
    ("values", "part", "found"),
    [([7], 0.5, 7), ([1, 19], 0.5, 1), ([1, 2, 3], 0.5, 2), (range(1, 11), 0.9, 9)],
)
def test_no_more_is_told_than_that_part_of_the_values_needs(values, part, found):
    assert quantile(values, part) == found
