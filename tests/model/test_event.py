# SPDX-License-Identifier: MIT
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from burst.model.event import Event

READ = msgspec.json.Decoder(Event).decode
NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1)
VALUES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text()


def test_an_event_is_one_line_of_rfc_18():
    line = Event(1.5, "join", {"ranks": "4-7", "note": "two\nlines"}).line()
    assert line == (
        '{"timestamp":1.5,"name":"join","context":{"ranks":"4-7","note":"two\\nlines"}}'
    )


@given(st.floats(0, 2e9), NAMES, st.dictionaries(st.text(), VALUES))
def test_an_event_comes_back(timestamp, name, context):
    event = Event(timestamp, name, context)
    assert READ(event.line()) == event
    assert "\n" not in event.line()
