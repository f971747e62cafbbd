# SPDX-License-Identifier: MIT
"""Names and labels that Google takes, from whatever we are called."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from burst_gke.resources import Labels, label_value, name_of
from hypothesis import given
from hypothesis import strategies as st

from burst.errors import Refused
from burst.kits.pods.names import spec_hash
from burst.model.burst import BurstId
from tests.plugins.gke.build import spec

NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?\Z")
# A label's value in Google Cloud and in Kubernetes, which both have ours.
VALUE = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?\Z")


@given(st.text(min_size=1, max_size=80))
def test_any_id_has_a_name(burst_id: str) -> None:
    assert NAME.match(name_of(BurstId(burst_id)))


@given(st.text(max_size=80))
def test_any_text_has_a_label(text: str) -> None:
    assert VALUE.match(label_value(text))


@given(st.lists(st.text(alphabet="aA-_0", max_size=70), unique=True, max_size=20))
def test_different_texts_stay_different(texts: list[str]) -> None:
    assert len({label_value(text) for text in texts}) == len(texts)
    assert len({name_of(BurstId(text)) for text in texts}) == len(texts)


def test_what_fits_is_left_as_it_is() -> None:
    assert name_of(BurstId("burst-0-3fa9c1")) == "burst-0-3fa9c1"
    assert label_value("owner-a_1") == "owner-a_1"


@pytest.mark.parametrize("burst_id", ["", "Burst-0-1", "b" * 64, "burst-0-"])
def test_an_id_that_is_no_label_is_refused(tmp_path: Path, burst_id: str) -> None:
    wrong = msgspec.structs.replace(spec(tmp_path), burst_id=BurstId(burst_id))
    with pytest.raises(Refused, match="cannot be a label"):
        Labels("owner-a", "gke").labels_of(wrong, "0")


def test_the_hash_is_of_what_is_made(tmp_path: Path) -> None:
    burst = spec(tmp_path)
    same = msgspec.structs.replace(burst, lease_end=5.0)
    other = msgspec.structs.replace(burst, hosts=("burst-0-0", "burst-0-2"))
    assert spec_hash(burst, "n2") == spec_hash(same, "n2")
    assert len({spec_hash(burst, "n2"), spec_hash(other, "n2"), spec_hash(burst)}) == 3
