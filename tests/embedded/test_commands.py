# SPDX-License-Identifier: MIT
"""`burst embedded …`, as a person types it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from burst_embedded.commands import group
from burst_embedded.lead_client import connect
from burst_embedded.store import STORE
from click.testing import CliRunner, Result

from burst.errors import BurstError
from burst.model.jobid import JobId, parse_jobid
from burst.model.lead import JobState
from burst.model.request import parse_request
from tests.contract.watching import Watch
from tests.embedded_instance import (
    EmbeddedInstance,
    embedded_instance,
    short_directory,
    write_files,
)
from tests.support.ports import free_port
from tests.support.waiting import HANG_S, wait_until


@pytest.fixture(scope="module")
def instance() -> Iterator[EmbeddedInstance]:
    """One lead for all of these tests, with a follower that nobody ends."""
    with embedded_instance(statedir=False) as instance:
        with closing(instance.lead()) as lead:
            instance.start_follower("burst-0-0")
            Watch(lead).online(2)
        yield instance


def run(instance: EmbeddedInstance, *words: str) -> Result:
    return CliRunner().invoke(group, words, env={"FLUX_URI": instance.uri})


def submit(instance: EmbeddedInstance, *words: str) -> JobId:
    result = run(instance, "submit", *words)
    assert result.exit_code == 0, result.output
    return parse_jobid(result.output)


def test_submit_prints_an_id_that_attach_takes(instance: EmbeddedInstance) -> None:
    result = run(instance, "submit", "-N2", "sh", "-c", "echo $BURST_HOSTNAME")
    assert result.output.startswith("ƒ")
    attached = run(instance, "attach", result.output.strip())
    assert sorted(attached.stdout.splitlines()) == ["burst-0-0", "lead-0"]
    assert attached.exit_code == 0


def test_options_reach_the_jobspec(instance: EmbeddedInstance) -> None:
    job = submit(
        instance,
        *("-N2", "--setattr=burstable", "--requires=burst-0", "sleep", "-n"),
    )
    jobspec = instance.jobspec(job)
    instance.cancel(job)
    request = parse_request(jobspec)
    assert (request.nodes, request.slots, request.exclusive) == (2, 2, True)
    system = jobspec["attributes"]["system"]
    assert system["constraints"] == {"properties": ["burst-0"]}
    assert system["burstable"] is True
    assert jobspec["tasks"][0]["command"] == ["sleep", "-n"]


def test_the_surroundings_of_the_user_are_those_of_the_job(
    instance: EmbeddedInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINE", "yes")
    job = submit(instance, "sh", "-c", "echo $PWD $MINE")
    assert run(instance, "attach", str(job)).stdout == f"{tmp_path} yes\n"


def test_attach_exits_with_the_jobs_status(instance: EmbeddedInstance) -> None:
    job = submit(instance, "sh", "-c", "echo out; echo err >&2; exit 3")
    result = run(instance, "attach", str(job))
    assert result.exit_code == 3
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert run(instance, "attach", str(submit(instance, "sleep", "x"))).exit_code == 1
    killed = submit(instance, "sh", "-c", "kill -15 $$")
    assert run(instance, "attach", str(killed)).exit_code == 143


def test_attach_waits_for_a_job_that_still_runs(instance: EmbeddedInstance) -> None:
    script = "echo ready; while [ ! -e go ]; do sleep 0.02; done; echo gone"
    with short_directory() as directory:
        system = {"cwd": str(directory)}
        job = instance.submit(slots=1, command=("sh", "-c", script), attributes=system)
        with ThreadPoolExecutor() as pool:
            attached = pool.submit(run, instance, "attach", str(job))
            with closing(connect(instance.uri)) as lead:
                wait_until(lambda: lead.output(job), "what it writes first")
            assert not attached.done()
            (directory / "go").touch()
            assert attached.result(HANG_S).stdout == "ready\ngone\n"


def test_cancel_ends_jobs_that_wait_and_that_run(instance: EmbeddedInstance) -> None:
    running = submit(instance, "sleep", "600")
    waiting = submit(instance, "-N9", "sleep", "600")
    result = run(instance, "cancel", str(running), str(waiting))
    assert result.exit_code == 0
    for job in (running, waiting):
        attached = run(instance, "attach", str(job))
        assert attached.exit_code != 0
        assert "exception: cancel" in attached.stderr
        assert instance.info(job).result == "canceled"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("attach", "nonsense"), "not a job id"),
        (("attach", "ƒ2"), "unknown job"),
        (("cancel", "ƒ2"), "unknown job"),
        (("submit", "--setattr=burst.provider=local", "true"), "burstable"),
        (("submit", "-N0", "true"), "not in the range"),
        (("submit",), "Missing argument"),
    ],
)
def test_what_cannot_be_done_is_said_without_a_traceback(
    instance: EmbeddedInstance, words: tuple[str, ...], said: str
) -> None:
    result = run(instance, *words)
    assert result.exit_code in (1, 2)
    assert said in f"{result.output}{result.exception}"
    assert isinstance(result.exception, SystemExit | BurstError)


def test_without_a_lead_each_command_says_so() -> None:
    with short_directory() as directory:
        uri = f"embedded://{directory}/control"
        result = CliRunner().invoke(group, ["cancel", "--uri", uri, "ƒ2"])
        assert result.exit_code == 1
        said = f"the lead at ipc://{directory}/control is not there"
        assert said in str(result.exception)
    result = CliRunner().invoke(group, ["cancel", "--uri", "local:///x", "ƒ2"])
    assert "not the URI of an embedded lead" in str(result.exception)


def broker(directory: Path, *words: str, hostname: str = "lead-0") -> Result:
    options = ["--config", str(directory / "broker.toml"), "--hostname", hostname]
    return CliRunner().invoke(
        group, [*words, *options, "--rundir", str(directory / "r")]
    )


def test_brokers_that_cannot_start_say_one_sentence() -> None:
    with short_directory() as directory:
        write_files(directory, free_port())
        wrong = broker(directory, "lead", hostname="burst-0-0")
        assert "burst-0-0 is rank 2, and the lead is rank 0" in str(wrong.exception)
        (directory / "curve.cert").chmod(0o644)
        opened = broker(directory, "follower", hostname="burst-0-0")
        assert "chmod 600" in str(opened.exception)
        write_files(directory, free_port())
        (directory / "broker.toml").write_text(
            (directory / "broker.toml").read_text().replace("default_bind", "# bind")
        )
        unbound = broker(directory, "lead")
        assert "has no bind address" in str(unbound.exception)
        for result in (wrong, opened, unbound):
            assert isinstance(result.exception, BurstError)
            assert "\n" not in str(result.exception)


def test_a_lead_stops_cleanly_and_leaves_neither_socket_nor_job() -> None:
    with embedded_instance() as instance:
        with closing(connect(instance.uri)) as lead:
            script = "echo $$; exec sleep 600"
            job = instance.submit(slots=1, command=("sh", "-c", script))
            Watch(lead).state(job, JobState.RUN)
            wait_until(lambda: lead.output(job), "its pid")
            pid = int(lead.output(job)[0].data)
        process = instance.process("lead-0")
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_S) == 0
        assert not Path(f"/proc/{pid}").exists()
        assert not (instance.directory / "r" / "control").exists()
        assert (instance.directory / "s" / STORE).exists()
        assert not (instance.directory / "r" / STORE).exists()
