# SPDX-License-Identifier: MIT
import json
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from burst.errors import ConfigError
from burst.model.job_record import RecordedEvent
from burst.model.jobid import JobId
from burst.model.resource_set import EMPTY, group_of
from burst.model.shape import Shape
from burst.runtime.job_recorder import JobRecorder
from tests.support.full_disk import room_for


def event(at: float, name: str = "start", **fields: Any) -> RecordedEvent:
    return RecordedEvent(id=JobId(7), timestamp=at, name=name, **fields)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, *events: RecordedEvent, **options: Any) -> None:
    recorder = JobRecorder(path, **options)
    for each in events:
        recorder.record(each)
    recorder.close()


@contextmanager
def ignored(signum: signal.Signals) -> Iterator[None]:
    before = signal.signal(signum, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signum, before)


def test_a_line_for_each_event_that_only_its_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    jobspec = msgspec.Raw(b'{"version":1}')
    allocation = EMPTY.with_ranks([group_of([0], Shape(2))], ["a"])
    write(
        path,
        event(1.0, "submit", context={"userid": 5}, jobspec=jobspec),
        event(2.0, "alloc", R=allocation),
        event(3.0),
    )
    first, second, third = read(path)
    content = {"context": {"userid": 5}, "jobspec": {"version": 1}}
    assert first == {"id": 7, "timestamp": 1.0, "name": "submit", **content}
    assert second["R"]["execution"]["R_lite"][0]["children"] == {"core": "0-1"}
    assert third == {"id": 7, "timestamp": 3.0, "name": "start"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_in_the_file_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    write(path, event(1.0), event(2.0))
    with path.open("ab") as file:
        file.write(b'{"cut')
    write(path, event(1.0), event(2.0), event(3.0))
    lines = path.read_text().splitlines()
    assert lines.pop(2) == '{"cut'  # that line is lost, and no other
    assert [json.loads(line)["timestamp"] for line in lines] == [1.0, 2.0, 3.0]


def test_what_the_lead_repeats_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    recorder = JobRecorder(path)
    for at in (1.0, 2.0):
        recorder.record(event(at))
    recorder.expect_repeats()
    for at in (1.0, 2.0, 3.0):
        recorder.record(event(at))
    recorder.close()
    assert [each["timestamp"] for each in read(path)] == [1.0, 2.0, 3.0]


def test_what_happens_after_the_clock_was_set_back_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    write(path, event(5000.0), event(9000.0, "finish"))
    recorder = JobRecorder(path, clock=lambda: 2000.0)
    # What the lead tells again, and what happens now.
    recorder.record(event(1500.0, "submit"))
    recorder.record(event(2000.0, "clean"))
    recorder.close()
    assert [each["timestamp"] for each in read(path)] == [5000.0, 9000.0, 2000.0]


def test_files_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    write(path, *(event(float(n)) for n in range(1, 40)), file_bytes=200, kept=2)
    files = sorted(each.name for each in tmp_path.iterdir())
    assert files == ["jobs", "jobs.1", "jobs.2"]
    assert all(each.stat().st_size <= 200 for each in tmp_path.iterdir())
    assert read(path)[-1]["timestamp"] == 39.0
    kept = [line["timestamp"] for name in files[::-1] for line in read(tmp_path / name)]
    assert kept == sorted(kept)


def test_a_file_that_cannot_be_written_is_an_error_of_the_settings(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match=r"daemon\.record"):
        JobRecorder(tmp_path / "none" / "jobs")


def test_a_line_that_a_disk_has_room_for_in_part_ends_the_recording(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is written after it would be lost with it."""
    path = tmp_path / "jobs"
    write(path, event(1.0))
    room = path.stat().st_size + 10
    with ignored(signal.SIGXFSZ), room_for(room):
        write(path, event(2.0), event(3.0))
        write(path, event(3.0))  # a daemon that starts before there is room again
    assert caplog.text.count("jobs are not recorded until") == 2
    assert path.stat().st_size == room
    write(path, event(4.0))
    first, _, last = path.read_text().splitlines()
    assert [json.loads(line)["timestamp"] for line in (first, last)] == [1.0, 4.0]


def test_a_full_disk_ends_the_recording_and_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = JobRecorder(Path("/dev/full"))
    with caplog.at_level("WARNING", "burst"):
        for number in range(10_000):
            recorder.record(event(float(number + 1)))
        recorder.close()
    assert caplog.text.count("jobs are not recorded until") == 1


class Hanging(JobRecorder):
    """On a disk that does not answer."""

    answers = threading.Event()

    def _write(self, line: bytes) -> None:
        self.answers.wait()
        super()._write(line)


def test_the_daemon_ends_though_the_disk_does_not_answer(tmp_path: Path) -> None:
    recorder = Hanging(tmp_path / "jobs", close_s=0.01)
    recorder.record(event(1.0))
    recorder.close()
    assert not (tmp_path / "jobs").read_text()
    recorder.answers.set()
