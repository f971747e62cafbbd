# SPDX-License-Identifier: MIT
import json
from pathlib import Path

import pytest

from burst.demo.kinds import Embedded, Flux
from burst.demo.scene import JobSeen
from burst.errors import BurstError
from burst.lead_setup.lead_files import LeadFiles
from burst.model.jobid import JobId

EMBEDDED_JOB = {
    "id": 9,
    "userid": 0,
    "state": "sched",
    "urgency": 16,
    "nnodes": 4,
    "ntasks": 4,
    "hosts": [],
    "result": "",
    "exit_code": 0,
    "t_submit": 5.0,
    "t_start": 0.0,
    "t_finish": 0.0,
    "command": ["true"],
    "memo": {},
    "events": [],
    "output_cut": False,
}
FLUX_JOB = {
    "id": 9,
    "nnodes": 4,
    "status": "SCHED",
    "urgency": 16,
    "t_submit": 5.0,
    "annotations": {},
}
MEMO = {"burst": {"state": "impossible", "why": "it needs 9 nodes"}}


def seen(state, **changes):
    return JobSeen(id=JobId(9), nodes=4, state=state, t_submit=5.0, **changes)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, seen("sched")),
        (
            {"urgency": 0, "memo": MEMO},
            seen("held", word="impossible", why="it needs 9 nodes"),
        ),
        (
            {"state": "run", "hosts": ["n0", "n1"], "t_start": 6.0},
            seen("run", hosts="n[0-1]", t_start=6.0),
        ),
        (
            {
                "state": "inactive",
                "result": "completed",
                "hosts": ["n0"],
                "t_start": 6.0,
                "t_finish": 7.0,
            },
            seen("completed", hosts="n0", t_start=6.0, t_end=7.0),
        ),
        (
            {
                "state": "inactive",
                "result": "canceled",
                "urgency": 0,
                "events": [{"timestamp": 8.0, "name": "clean"}],
            },
            seen("canceled", t_end=8.0),
        ),
        ({"events": [{"timestamp": 5.0, "name": "submit"}]}, seen("sched")),
    ],
)
def test_a_listing_of_the_embedded_lead_is_read(fields, expected):
    text = json.dumps([{**EMBEDDED_JOB, **fields}])

    assert Embedded().read_jobs(text) == (expected,)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, seen("sched")),
        (
            {"urgency": 0, "annotations": {"user": MEMO, "sched": {"a": 1}}},
            seen("held", word="impossible", why="it needs 9 nodes"),
        ),
        (
            {"status": "RUN", "nodelist": "n[0-1]", "t_run": 6.0},
            seen("run", hosts="n[0-1]", t_start=6.0),
        ),
        (
            {"status": "COMPLETED", "nodelist": "n0", "t_run": 6.0, "t_cleanup": 7.0},
            seen("completed", hosts="n0", t_start=6.0, t_end=7.0),
        ),
        (
            {"status": "CANCELED", "urgency": 0, "t_cleanup": 8.0},
            seen("canceled", t_end=8.0),
        ),
    ],
)
def test_a_listing_of_flux_is_read(fields, expected):
    text = json.dumps({"jobs": [{**FLUX_JOB, **fields}]})

    assert Flux().read_jobs(text) == (expected,)


@pytest.fixture
def files(tmp_path):
    return LeadFiles(
        config=tmp_path / "broker.toml",
        resources=tmp_path / "R",
        certificate=tmp_path / "burst.cert",
        commands=(("flux", "broker", "-Slead"), ("flux", "broker", "-Snode")),
        uri=f"local://{tmp_path}/run/local",
    )


def test_brokers_of_one_host_have_directories_of_their_own(files, tmp_path):
    for kind in (Embedded(), Flux()):
        brokers = kind.brokers(files)

        assert list(brokers) == ["lead-0", "lead-1"]
        assert any(str(tmp_path / "lead-1") in word for word in brokers["lead-1"])


def test_flux_is_started_by_the_command_that_is_written_for_it(files):
    assert Flux().brokers(files)["lead-0"] == files.commands[0]


def test_clients_find_the_lead_by_its_uri(files, tmp_path):
    assert Flux().uri(files) == files.uri
    assert Embedded().uri(files) == f"embedded://{tmp_path}/run/control"


def test_without_flux_the_demo_on_flux_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(BurstError, match=r"no flux on PATH; install flux-core"):
        Flux().check()


def test_the_embedded_lead_needs_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    Embedded().check()


@pytest.mark.flux
def test_where_there_is_a_flux_it_will_do():
    Flux().check()


def test_the_embedded_lead_and_its_users_run_under_this_very_python(files):
    argv = Embedded().brokers(files)["lead-0"]

    assert Path(argv[0]).exists()
    assert argv[:3] == Embedded().user
