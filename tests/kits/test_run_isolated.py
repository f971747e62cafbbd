# SPDX-License-Identifier: MIT
"""The program that runs a job inside an isolated burst, in a real instance."""

import base64
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest

from burst.model.listing import listing_script
from burst.model.program import command_jobspec, script_jobspec
from tests.flux_instance import FLUX, MISSING
from tests.support.commands import run_captured
from tests.support.waiting import HANG_S

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]
RUNNER = str(files("burst") / "flux_setup" / "files" / "run-isolated.py")
SCRIPT = '#!/bin/sh\necho "size $(flux getattr size) $COLOR $1"\nexit 4\n'


def job(*command: str, nodes: int = 1, **system: Any) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(command_jobspec(command, nodes, 0.0))
    spec["attributes"]["system"] |= system
    return spec


def batch(*options: str, script: str = SCRIPT, **more: Any) -> dict[str, Any]:
    """A jobspec as `flux batch` makes it."""
    command = ("flux", "broker", *options, "{{tmpdir}}/script", "word")
    data = {"data": script, "encoding": "utf-8", "mode": 33216}
    attached = {"script": {**data, **more.pop("entry", {})}, **more.pop("others", {})}
    environment = {"COLOR": "red"}
    return job(*command, files=attached, environment=environment, **more)


class Done(msgspec.Struct):
    status: int
    out: str
    err: str


@pytest.fixture(scope="module")
def uri() -> Iterator[str]:
    """An instance of one broker; what is run in it is so as by its initial program."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("FLUX_")}
    program = 'echo "$FLUX_URI"; cat'
    command = [FLUX, "start", "-s1", "sh", "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=plain, stdin=pipe, stdout=pipe) as instance:
        assert instance.stdout
        yield instance.stdout.readline().decode().strip()
        # At the end of its input the program ends, and so do the brokers.
        assert instance.stdin
        instance.stdin.close()
        assert instance.wait(HANG_S) == 0


Run = Callable[..., Done]


@pytest.fixture
def run(uri: str, tmp_path: Path) -> Run:
    """Return what runs a jobspec."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("FLUX_")}
    environment = {**plain, "FLUX_URI": uri, "SHELL": "/bin/sh"}

    def run(spec: dict[str, Any], flux: str = str(FLUX)) -> Done:
        source, result = tmp_path / "jobspec.json", tmp_path / "result"
        source.write_text(json.dumps(spec))
        words = [FLUX, "python", RUNNER, flux, str(source), str(result)]
        done = run_captured(words, env=environment, timeout=HANG_S)
        assert done.returncode == 0, done.stderr
        found = json.loads(result.read_text())
        return Done(found["exit_status"], done.stdout, done.stderr)

    return run


def test_a_job_runs_with_its_environment_and_ends_as_it_ends(run: Run) -> None:
    words = ("sh", "-c", 'echo "$COLOR in $(pwd)"; command -v sh; echo oh >&2; exit 3')
    done = run(job(*words, environment={"COLOR": "red"}))
    assert done.status == 3
    assert done.out.startswith("red in /tmp\n/")
    assert "oh\n" in done.err


def test_a_job_that_the_instance_does_not_take_has_a_status_too(run: Run) -> None:
    spec = job("true")
    del spec["resources"]
    done = run(spec)
    assert done.status != 0
    assert done.err


def test_a_signal_is_a_status_as_a_shell_has_it(run: Run, tmp_path: Path) -> None:
    kills = "#!/bin/sh\nkill -KILL $$\n"
    assert run(batch(script=kills)).status == 137
    # A submit that is killed is no success.
    flux = tmp_path / "flux"
    flux.write_text(kills)
    flux.chmod(0o700)
    assert run(job("true"), str(flux)).status == 128 + 9


def test_a_batch_script_runs_in_the_instance_itself(run: Run) -> None:
    encoded = base64.b64encode(SCRIPT.encode()).decode()
    entry = {"data": encoded, "encoding": "base64"}
    assert run(batch(entry=entry)) == Done(4, "size 1 red word\n", "")


def test_a_batch_script_with_options_has_an_instance_within(run: Run) -> None:
    script = "#!/bin/sh\nflux getattr instance-level\n"
    done = run(batch("-Slog-stderr-level=3", script=script))
    assert (done.status, done.out) == (0, "1\n")


def listing(*lines: str) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(script_jobspec(listing_script(lines), 1, 0.0))
    return spec


def test_each_line_of_a_listing_is_a_job(run: Run) -> None:
    lines = (
        "-n1 sh -c 'echo $FLUX_JOB_NNODES $COLOR; pwd' # as a shell reads it",
        "--env=COLOR=red --cwd=/ sh -c 'sleep 0.2; echo $COLOR; pwd; exit 3'",
        "--cc=1-2 echo {cc}",
        "sh -c 'exit 2'",
    )
    done = run(listing(*lines))
    assert done.status == 3
    assert done.out.splitlines() == [
        *(f"== {lines[0]}", "1", "/tmp"),
        *(f"== {lines[1]}", "red", "/"),
        *(f"== {lines[2]}", "1", f"== {lines[2]}", "2"),
        f"== {lines[3]}",
    ]
    assert "exited with exit code 3" in done.err


def test_a_listing_ends_as_its_jobs_do(run: Run) -> None:
    done = run(listing("true", "echo a"))
    assert done == Done(0, "== true\n== echo a\na\n", "")
    # One that is not told of counts, too.
    assert run(listing("--quiet sh -c 'sleep 0.2; exit 3'")).status == 1


def test_a_line_that_is_no_job_ends_none_of_the_others(run: Run) -> None:
    done = run(listing("--no-such-option x", "echo 'a", "echo last"))
    assert done.status != 0
    assert done.out == "== echo last\nlast\n"
    assert "not submitted: --no-such-option x\n" in done.err
    assert "not submitted: echo 'a\n" in done.err


def test_a_script_that_takes_too_long_is_ended(run: Run) -> None:
    """It is asked to end, and then made to."""
    script = "#!/bin/sh\ntrap 'echo told' TERM\nwhile :; do sleep 0.05; done\n"
    done = run(batch(script=script, duration=3.0))
    assert (done.status, done.out) == (142, "told\n")
    assert "out of time after 3 s" in done.err
