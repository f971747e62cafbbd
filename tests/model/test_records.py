# SPDX-License-Identifier: MIT
"""The records of bursts and holds as they are kept: text and back, and bad text."""

import json

import pytest

from burst.core.lifecycle import restore
from burst.errors import RecordUnreadable
from burst.model.burst import JobTimes
from burst.model.hold import Hold, HoldState, decode_hold, encode_hold
from burst.model.record import (
    RECORD_VERSION,
    decode_job,
    decode_record,
    encode_job,
    encode_record,
)
from tests.lifecycles import WHOLE_WAY, run


def test_a_job_of_a_burst_comes_back() -> None:
    times = JobTimes(submitted=1.0, held=2.0, started=3.5)
    assert decode_job(encode_job(times)) == times
    assert decode_job(encode_job(JobTimes(submitted=1.0))) == JobTimes(submitted=1.0)
    with pytest.raises(RecordUnreadable, match="not a record of a burst's job: "):
        decode_job('{"held":2.0}')


def test_a_burst_is_kept_as_its_lease_and_its_events() -> None:
    burst = run(*WHOLE_WAY)
    text = encode_record(burst)
    assert set(json.loads(text)) == {"version", "lease", "events", "sums"}
    assert restore(decode_record(text), burst.times) == burst


def test_a_record_of_another_version_is_left_to_that_version() -> None:
    record = json.loads(encode_record(run()))
    record["version"] = RECORD_VERSION + 1
    told = r"record of version 3; this program reads version 2; run the version"
    with pytest.raises(RecordUnreadable, match=told):
        decode_record(json.dumps(record))


@pytest.mark.parametrize("state", HoldState)
def test_a_hold_comes_back(state: HoldState) -> None:
    hold = Hold(urgency=7, state=state, since=1.5)
    assert decode_hold(encode_hold(hold)) == hold
    assert hold.then(HoldState.TAKEN_BACK, 2.5) == Hold(
        urgency=7, state=HoldState.TAKEN_BACK, since=2.5
    )


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"urgency":1,"since":0,"state":"odd"}', '{"version":1}']
)
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(RecordUnreadable, match="not a hold record: "):
        decode_hold(text)
    with pytest.raises(RecordUnreadable, match="not a burst record: "):
        decode_record(text)


def test_a_lease_with_other_hosts_than_ranks_cannot_be_read() -> None:
    record = json.loads(encode_record(run()))
    record["lease"]["hosts"].pop()
    with pytest.raises(RecordUnreadable, match="1 hosts, 2 ranks"):
        decode_record(json.dumps(record))
