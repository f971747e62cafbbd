# SPDX-License-Identifier: MIT
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.timeline import STAGES
from burst.demo.picture import (
    PHASES,
    RUN,
    WAIT,
    WIDTH,
    Span,
    burst_lane,
    draw,
    job_lane,
    ticks,
)
from tests.demo.build import burst_row, seen

SVG = "{http://www.w3.org/2000/svg}"
moments = st.floats(0, 1e6)
jobs = st.builds(
    lambda number, start, end: seen(number, t_start=start, t_end=end, hosts="<a&b>"),
    st.integers(1, 10**6),
    moments,
    moments,
)
bursts = st.builds(
    lambda submit, times: burst_row(
        t_submit=submit, timeline={"submit": 0.0, **times}, id='a"<&'
    ),
    moments,
    st.dictionaries(st.sampled_from(list(STAGES)), moments),
)


def bars(picture):
    return [rect for rect in picture.iter(f"{SVG}rect") if len(rect)]


@given(
    st.text(st.characters(categories=("L", "P", "S"))), st.lists(jobs), st.lists(bursts)
)
def test_any_picture_is_xml_and_stays_within_its_width(title, some_jobs, some_bursts):
    picture = ET.fromstring(draw(title, some_jobs, some_bursts))

    assert picture.tag == f"{SVG}svg"
    for rect in picture.iter(f"{SVG}rect"):
        left, width = float(rect.get("x", "0")), float(rect.get("width", "nan"))
        assert left >= 0
        assert width >= 0
        assert left + width <= WIDTH


def test_each_job_and_each_burst_has_its_lane_with_its_name():
    some_jobs = [seen(2, "completed", t_start=3.0, t_end=5.0, hosts="burst-0-[0-1]")]
    some_bursts = [burst_row(0), burst_row(1, until="online")]

    picture = ET.fromstring(draw("a title", some_jobs, some_bursts))

    words = [text.text for text in picture.iter(f"{SVG}text")]
    assert words[0] == "a title"
    assert {"ƒ3", "burst-0-abcdef", "burst-1-abcdef"} <= set(words)
    lanes = [r for r in picture.iter(f"{SVG}rect") if r.get("class") == "lane"]
    assert len(lanes) == 3


def test_a_bar_says_what_went_on_and_when():
    picture = ET.fromstring(draw("", [], [burst_row(until="online")]))

    assert [bar.findtext(f"{SVG}title") for bar in bars(picture)] == [
        "burst-0-abcdef, decide: 0.00 s to 0.02 s",
        "burst-0-abcdef, start followers: 0.02 s to 0.50 s",
        "burst-0-abcdef, join: 0.50 s to 0.75 s",
    ]


def test_the_legend_explains_the_colours_that_are_there_and_no_others():
    picture = ET.fromstring(draw("", [seen(1)], [burst_row(until="joined")]))

    words = [t.text for t in picture.iter(f"{SVG}text") if t.get("class") == "legend"]
    assert words == ["wait, decide", "start followers"]


def test_a_picture_of_nothing_is_a_picture():
    picture = ET.fromstring(draw("nothing", [], []))

    assert bars(picture) == []


@pytest.mark.parametrize(
    ("job", "about", "spans"),
    [
        (
            seen(12, "completed", t_start=13.0, t_end=15.0, hosts="n[0-1]"),
            "2 nodes on n[0-1]",
            (Span(2.0, 3.0, WAIT), Span(3.0, 5.0, RUN)),
        ),
        (
            seen(12, "canceled", t_end=15.0),
            "2 nodes, canceled",
            (Span(2.0, 5.0, WAIT),),
        ),
        (seen(12, "sched"), "2 nodes, sched", (Span(2.0, 2.0, WAIT),)),
        (
            seen(12, "run", t_start=13.0, hosts="n0"),
            "2 nodes on n0, run",
            (Span(2.0, 3.0, WAIT), Span(3.0, 3.0, RUN)),
        ),
    ],
)
def test_a_job_waits_and_then_runs(job, about, spans):
    lane = job_lane(job, 10.0)

    assert (lane.about, lane.spans) == (about, spans)


def test_what_a_failed_burst_did_not_reach_is_left_out():
    timeline = {"submit": 0.0, "provision": 0.5, "reaped": 2.0}
    row = burst_row(timeline=timeline, result="failed", t_submit=11.0)

    lane = burst_lane(row, 10.0)

    assert lane.about == "4 nodes, ranks 2-5, failed"
    assert lane.spans == (
        Span(1.0, 1.5, PHASES["provision"]),
        Span(1.5, 3.0, PHASES["reaped"]),
    )


def test_a_burst_that_is_not_over_is_named_by_its_state():
    assert burst_lane(burst_row(until="online"), 0.0).about.endswith(", online")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0, [0.0, 1.0]),
        (1.0, [n / 10 for n in range(11)]),
        (4.2, [n / 2 for n in range(10)]),
        (10.0, [float(n) for n in range(11)]),
        (11.0, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]),
        (99.0, [float(n) for n in range(0, 101, 10)]),
    ],
)
def test_ticks_are_round(seconds, expected):
    assert ticks(seconds) == pytest.approx(expected)


@given(st.floats(1e-6, 1e6))
def test_ticks_reach_just_over_the_end_and_are_eleven_at_the_most(seconds):
    found = ticks(seconds)

    assert 2 <= len(found) <= 11
    assert found[0] == 0.0
    assert found[-2] < seconds <= found[-1] * (1 + 1e-6)
