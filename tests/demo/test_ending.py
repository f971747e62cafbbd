# SPDX-License-Identifier: MIT
import io
from pathlib import Path

from rich.console import Console

from burst.demo.ending import report
from burst.demo.record import Left, Record
from tests.demo.test_record import GOOD


def printed(record, width=120):
    file = io.StringIO()
    console = Console(file=file, width=width, highlight=False)
    report(record, Path("/somewhere/demo.svg"), console)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_the_report_has_outputs_stages_what_is_left_and_the_picture():
    assert printed(GOOD) == [
        "JOB  NODES  STATE      OUTPUT",
        "ƒ2   2      completed  lead-0 lead-1",
        "ƒ3   4      completed  burst-0-0 burst-0-1 burst-0-2 burst-0-3",
        "ƒ4   2      completed  burst-1-0 burst-1-1",
        "ƒ5   9      canceled   none; it was told: no",
        "",
        "SECONDS TO     submit  hold provision joined online released started finished"
        " drained reaped",
        "burst-0-abcdef  0.000 0.010     0.020  0.500  0.750    0.750   0.875    1.000"
        "   3.000  3.500",
        "burst-1-abcdef  0.000 0.010     0.020  0.500  0.750    0.750   0.875    1.000"
        "   3.000  3.500",
        "",
        "left: 0 followers, 0 slots leased, 0 files",
        "picture: /somewhere/demo.svg",
    ]


def test_a_narrow_terminal_gets_a_sentence_for_each_burst():
    lines = printed(GOOD, width=60)
    first = next(n for n, line in enumerate(lines) if line.startswith("burst-0"))

    assert [line.replace("\u00a0", " ") for line in lines[first : first + 4]] == [
        "burst-0-abcdef: submit 0.000, hold 0.010, provision 0.020,",
        "  joined 0.500, online 0.750, released 0.750,",
        "  started 0.875, finished 1.000, drained 3.000,",
        "  reaped 3.500 s",
    ]


def test_what_never_began_is_left_out():
    record = Record(lead="flux", left=Left(0, 0, 2), failure="no lead")

    assert printed(record) == [
        "left: 0 followers, 0 slots leased, 2 files",
        "picture: /somewhere/demo.svg",
    ]
