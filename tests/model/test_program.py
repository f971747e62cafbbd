# SPDX-License-Identifier: MIT
"""A job's jobspec, as another instance gets it."""

import json

import pytest

from burst.errors import JobspecError
from burst.model.program import Program, command_jobspec, far_jobspec, script_jobspec
from burst.model.request import parse_request

SYSTEM = {
    "cwd": "/home/u/run",
    "duration": 60.0,
    "queue": "burst",
    "constraints": {"properties": ["burst"]},
    "dependencies": [{"scheme": "afterok", "value": "f1"}],
    "burstable": True,
    "burst": {"mode": "isolated"},
    "job": {"name": "app"},
    "files": {"data": {"mode": 33188, "data": "x", "encoding": "utf-8"}},
    "shell": {
        "options": {"verbose": 2, "output": {"stdout": {"type": "file", "path": "out"}}}
    },
    "environment": {
        "COLOR": "red",
        "PATH": "/opt/here/bin",
        "HOME": "/home/u",
        "PWD": "/home/u/run",
        "FLUX_URI": "local:///run/here",
        "LD_LIBRARY_PATH": "/opt/here/lib",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    },
}


def far(**changes: object) -> dict[str, object]:
    spec = {
        "version": 1,
        "resources": [{"type": "slot"}],
        "tasks": [{"command": ["app"]}],
        "attributes": {"system": SYSTEM, "user": {"note": "mine"}},
        **changes,
    }
    found: dict[str, object] = json.loads(far_jobspec(spec))
    return found


def test_what_is_of_the_job_goes_along_and_what_is_of_this_place_does_not() -> None:
    assert far() == {
        "version": 1,
        "resources": [{"type": "slot"}],
        "tasks": [{"command": ["app"]}],
        "attributes": {
            "system": {
                "cwd": "/tmp",
                "duration": 60.0,
                "job": {"name": "app"},
                "files": SYSTEM["files"],
                "shell": {"options": {"verbose": 2}},
                "environment": {"COLOR": "red"},
            }
        },
    }


def test_little_is_enough() -> None:
    found = far(attributes={"system": {}})
    assert found["attributes"] == {
        "system": {"cwd": "/tmp", "shell": {"options": {}}, "environment": {}}
    }


@pytest.mark.parametrize(
    "attributes", [None, {}, {"system": None}, {"system": {"shell": 3}}]
)
def test_what_cannot_be_read_is_said(attributes: object) -> None:
    with pytest.raises(JobspecError, match="cannot be read"):
        far(attributes=attributes)


def test_a_command_runs_once_on_each_node() -> None:
    spec = json.loads(command_jobspec(("hostname", "-f"), 3, 60.0))
    assert str(parse_request(spec)) == "3 whole nodes, 3 slots of 1 core"
    assert spec["tasks"][0]["command"] == ["hostname", "-f"]
    assert spec["attributes"]["system"]["duration"] == 60.0


def test_a_script_is_as_flux_batch_has_it() -> None:
    spec = json.loads(script_jobspec("#!/bin/sh\ntrue\n", 2, 0.0))
    assert str(parse_request(spec)) == "2 whole nodes, 2 slots of 1 core"
    assert spec["tasks"][0]["command"] == ["flux", "broker", "{{tmpdir}}/script"]
    system = spec["attributes"]["system"]
    assert system["files"]["script"]["data"] == "#!/bin/sh\ntrue\n"
    assert (system["duration"], system["cwd"]) == (0.0, "/tmp")


def test_nobody_reads_a_jobspec_in_a_log() -> None:
    program = Program(kind="job", jobspec='{"TOKEN":"secret"}')
    assert repr(program) == "Program(kind='job', jobspec=<18 characters>)"
    assert "secret" not in str(program)
