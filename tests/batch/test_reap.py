# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from burst.batch.batch_plan import LeadRequest, SlotRequest
from burst.batch.lead_directory import BatchJob, LeadDirectory
from burst.batch.reap import SUBMIT_DEADLINE_S, is_job_over, reap_all, reap_lead
from burst.errors import BurstError, ConfigError, LeadError, Transient
from burst.provider import BurstSpec
from burst.testing import FakeProvider, example_lead, example_spec


class Told(list[str]):
    """What was told, and pauses that take no time."""

    def pause(self, _: float) -> None:
        """Come back at once."""


def spec(directory: Path, number: int) -> BurstSpec:
    return example_spec(example_lead(directory), number, "nodes")


def test_all_is_reaped_until_the_provider_says_that_nothing_is_left(
    tmp_path: Path,
) -> None:
    fake, told = FakeProvider(), Told()
    bursts = [spec(tmp_path, number) for number in range(2)]
    for burst in bursts:
        fake.provision(burst)
    fake.ends_after = 2
    assert reap_all({"fake": fake}, 60.0, told.append, told.pause) == {}
    assert fake.observe() == []
    assert all(burst.burst_id in told[0] for burst in bursts)


def test_what_is_listed_late_is_found_all_the_same(tmp_path: Path) -> None:
    fake, told = FakeProvider(), Told()
    fake.listed_after = 1
    fake.provision(spec(tmp_path, 0))
    assert reap_all({"fake": fake}, 60.0, told.append, told.pause) == {}
    assert not fake.cloud.bursts


def test_each_burst_that_is_found_has_it_look_for_others_again(tmp_path: Path) -> None:
    fake, told = FakeProvider(), Told()
    fake.provision(spec(tmp_path, 0))
    for _ in range(2):
        fake.observe()
    # From here on the first is listed at once, and the other at the third look.
    fake.listed_after = 2
    fake.provision(spec(tmp_path, 1))
    assert reap_all({"fake": fake}, 60.0, told.append, told.pause) == {}
    assert not fake.cloud.bursts


def test_past_the_deadline_what_is_left_is_named_with_the_reason(
    tmp_path: Path,
) -> None:
    fake, told = FakeProvider(), Told()
    burst = spec(tmp_path, 0)
    fake.provision(burst)
    fake.next_reap_error = Transient("connection reset")
    left = reap_all({"fake": fake}, 0.0, told.append, told.pause)
    assert left == {burst.burst_id: "connection reset"}
    fake.next_observe_error = Transient("no route")
    left = reap_all({"fake": fake}, 0.0, told.append, told.pause)
    assert left == {"provider fake": "no route"}
    assert told == [
        f"taking down {burst.burst_id}",
        f"{burst.burst_id} cannot be taken down yet: connection reset",
        "provider fake cannot be read yet: no route",
    ]


def made(base: Path, flux: Path) -> LeadDirectory:
    place = LeadDirectory.new(base / "batch")
    place.make(LeadRequest(slots=(SlotRequest(1),), flux=str(flux)), b"")
    return place


def fake_flux(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("answer", "over"),
    [("echo RUN", False), ("echo INACTIVE", True), ("true", False)],
)
def test_a_lead_is_over_when_its_job_is(
    tmp_path: Path, answer: str, over: bool
) -> None:
    place = made(tmp_path, fake_flux(tmp_path / "flux", answer))
    place.set_job(BatchJob("f1", "local:///parent"))
    assert is_job_over(place) is over


def test_nobody_is_taken_for_over_whose_parent_does_not_answer(tmp_path: Path) -> None:
    place = made(tmp_path, fake_flux(tmp_path / "flux", "echo gone >&2; exit 1"))
    place.set_job(BatchJob("f1", "local:///parent"))
    with pytest.raises(LeadError, match=r"its job f1 is over: .*: gone; if its inst"):
        is_job_over(place)
    place.job_file.write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        is_job_over(place)


@pytest.mark.parametrize("job", [None, BatchJob("f1", "local:///parent")])
def test_a_job_that_nobody_knows_is_over_unless_it_may_come(
    tmp_path: Path, job: BatchJob | None
) -> None:
    flux = fake_flux(tmp_path / "flux", "echo JobID f1 unknown >&2; exit 1")
    place = made(tmp_path, flux)
    if job:
        place.set_job(job)
    assert not is_job_over(place)
    before = time.time() - SUBMIT_DEADLINE_S - 1
    os.utime(place.path / "wish.json", (before, before))
    assert is_job_over(place)


def test_what_is_left_past_the_deadline_stays_known(tmp_path: Path) -> None:
    place = made(tmp_path, tmp_path / "flux")
    told = Told()
    reap_lead(place, told.append)
    place.set_owner("me-1")
    path = tmp_path / "none" / "followers"
    provider = f'[providers.local]\ntype = "local"\ndir = "{path}"\n'
    # A file where the followers' directory would be: it cannot be looked at.
    path.parent.mkdir(mode=0o755)
    path.write_text("")
    place.settings.write_text(f'{provider}[deadlines]\nreap = "0"\n')
    with pytest.raises(BurstError, match=r"not all gone within 0s \(deadlines.reap\)"):
        reap_lead(place, told.append)
    assert place.owner() == "me-1"
    path.unlink()
    place.settings.write_text(provider)
    reap_lead(place, told.append)
    assert place.owner() == ""
