# SPDX-License-Identifier: MIT
"""The whole evening: prepare, tell the story, take everything down, report."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path

import msgspec
from rich.console import Console

from burst.demo.ending import report
from burst.demo.kinds import Kind
from burst.demo.picture import draw
from burst.demo.place import Place, count_below, make_place
from burst.demo.processes import Processes
from burst.demo.record import Record
from burst.demo.setup import Setup
from burst.demo.stop import Interrupted, Stop
from burst.demo.story import Story
from burst.demo.tidy import tidy
from burst.demo.view import open_view
from burst.errors import BurstError

_TITLES = {
    "embedded": "burst demo: an embedded lead borrows six nodes and gives them back",
    "flux": "burst demo: a Flux instance borrows six nodes and gives them back",
}
# What a shell makes of a program that a signal ended.
_SIGNALED = 128
_PIPE_WIDTH = 120


def play(kind: Kind, svg: Path, *, as_json: bool) -> int:
    """Play the demo and return the exit status.

    Raises BurstError, before anything is started, where it cannot be played.
    """
    kind.check()
    _check_writable(svg)
    began = time.monotonic()
    with Stop() as stop:
        place = make_place()
        try:
            record = _perform(kind, place, stop)
        except Interrupted as interrupted:
            place.remove()
            _say("interrupted; all that was started is ended, and its files removed")
            return _SIGNALED + interrupted.signum
    record, faults = _remove_files(record, place)
    jobs = [act.job for act in record.acts]
    svg.write_text(draw(_TITLES[kind.name], jobs, record.bursts))
    _report(record, svg, as_json=as_json)
    for fault in faults:
        _say(f"ERROR: {fault}")
    if faults:
        _say(f"logs and settings are kept in {place.directory}")
        return 1
    _say(f"all of it happened, in {time.monotonic() - began:.1f} s")
    return 0


def _perform(kind: Kind, place: Place, stop: Stop) -> Record:
    """Tell the story and take everything down. Raises Interrupted, after that."""
    console = Console(stderr=True, highlight=False)
    with closing(open_view(_TITLES[kind.name], console)) as view:
        setup = Setup(
            kind=kind,
            place=place,
            processes=Processes(place.directory, stop),
            view=view,
            stop=stop,
        )
        story = Story(setup)
        failure = ""
        try:
            story.tell()
        except (BurstError, OSError) as error:
            failure = str(error)
        finally:
            left = tidy(setup, story)
    return Record(
        lead=kind.name,
        mode=kind.mode,
        acts=story.acts,
        bursts=story.scene.bursts,
        left=left,
        failure=failure,
    )


def _remove_files(record: Record, place: Place) -> tuple[Record, list[str]]:
    """Remove the directory, unless there are faults that its logs may explain."""
    faults = record.faults()
    if not faults:
        place.remove()
    files = count_below(place.directory) + place.directory.exists()
    left = msgspec.structs.replace(record.left, files=files)
    record = msgspec.structs.replace(record, left=left)
    return record, faults or record.faults()


def _check_writable(svg: Path) -> None:
    """Raise BurstError now rather than when all is done."""
    directory = svg.absolute().parent
    target = svg if svg.exists() else directory
    if svg.is_dir() or not directory.is_dir() or not os.access(target, os.W_OK):
        raise BurstError(f"{svg}: cannot be written", "name another file with --svg")


def _report(record: Record, svg: Path, *, as_json: bool) -> None:
    if as_json:
        text = json.dumps(record.as_json(), indent=2, ensure_ascii=False)
        sys.stdout.write(f"{text}\n")
        return
    # A pipe has no width; rich would take it for a terminal of 80 columns.
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    report(record, svg.absolute(), Console(highlight=False, width=width))


def _say(text: str) -> None:
    sys.stderr.write(f"burst demo: {text}\n")
