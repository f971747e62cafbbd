# SPDX-License-Identifier: MIT
"""`run-burst`: one burst by hand, with a daemon beside the lead and without."""

from __future__ import annotations

import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from burst.cli.run_burst import command
from burst.lead import ANSWER_S
from burst.model.exit_status import INTERRUPTED
from burst.model.jobid import format_f58
from burst.model.lead import JobState
from tests.cli.cli_harness import (
    BURST,
    CliHarness,
    CommandResult,
    invoke,
)
from tests.cli.conftest import Quiet
from tests.contract.instance import SLEEP
from tests.support.terminal import on_terminal
from tests.support.waiting import HANG_S, wait_until

RUN_BURST = str(Path(BURST).with_name("run-burst"))


def command_line(cli: CliHarness, *words: str) -> list[str]:
    uri = () if "--uri" in words else ("--uri", cli.uri)
    # Under nohup(1), programs would ignore SIGHUP, which a test sends. Unbuffered,
    # Python would have no output left for the end, as of a pipe that nobody reads.
    hears = ("env", "--default-signal=HUP", "--unset=PYTHONUNBUFFERED")
    return [*hears, RUN_BURST, *words, "-c", str(cli.config), *uri]


def begin(cli: CliHarness, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command_line(cli, *words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> CommandResult:
    with process:
        try:
            stdout, stderr = process.communicate(timeout=HANG_S)
        finally:
            process.kill()
    return CommandResult(process.returncode, stdout, stderr)


def run_burst(cli: CliHarness, *words: str) -> CommandResult:
    """Run `run-burst` in this process."""
    uri = () if "--uri" in words else ("--uri", cli.uri)
    return invoke(command, "run-burst", *words, "-c", str(cli.config), *uri)


def error_of(said: CommandResult) -> str:
    assert said.status == 1, said
    *_, line = said.stderr.splitlines()
    return line.removeprefix("run-burst: ERROR: ")


@contextmanager
def taken_down(cli: CliHarness, name: str) -> Iterator[None]:
    """Take what is in that slot down afterwards, however the block ends."""
    try:
        yield
    finally:
        run_burst(cli, "--down", "--name", name)


def left(cli: CliHarness) -> list[str]:
    return [status.burst_id for status in cli.provider().observe()]


def test_a_whole_slot_is_filled_and_taken_down_without_a_daemon(
    unserved: Quiet,
) -> None:
    instance, cli = unserved
    up, stays = run_burst(cli).lines
    assert up.startswith("burst-0-[0-3] joined as ranks 2-5: burst-0-")
    assert stays == "it stays until: run-burst --down --name burst-0"
    (burst_id,) = left(cli)
    assert up.endswith(burst_id)
    told = cli.run("kubeconfig", burst_id).stderr
    assert f"{burst_id} is of provider local, which has no cluster to reach" in told
    assert "there is no burst 'nope'" in cli.run("kubeconfig", "nope").stderr
    assert error_of(run_burst(cli)) == (
        f"burst-0-[0-3] is leased by {burst_id}; run-burst --down"
    )
    assert run_burst(cli, "--down").lines == [f"{burst_id} is gone: canceled"]
    assert left(cli) == []
    told = "there is no burst in burst-0-[0-3]; burst status -a"
    assert error_of(run_burst(cli, "--down")) == told
    with closing(instance.lead()) as lead:
        lead.listen(lambda: None)
        assert lead.observe().drained == {}


def test_a_daemon_that_hangs_is_told_within_seconds(cli: CliHarness) -> None:
    with cli.daemon() as daemon:
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            assert "within 5s" in error_of(run_burst(cli))
            assert time.monotonic() - began < ANSWER_S / 2
        finally:
            daemon.process.send_signal(signal.SIGCONT)


def test_it_is_made_for_the_job_that_waits(unserved: Quiet) -> None:
    instance, cli = unserved
    job = instance.submit(nodes=2)
    with taken_down(cli, "burst-1"):
        up, _ = run_burst(cli, "--name", "burst-1", "--lead-size", "10").lines
        assert up.startswith("burst-1-[0-1] joined as ranks 6-7: ")
        wait_until(
            lambda: instance.info(job).state is JobState.INACTIVE, format_f58(job)
        )
    assert instance.info(job).result == "completed"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--name", "nope"), "the lead has no hosts nope-0, nope-1, ...: it has lead-"),
        (("--name", "nope", "--down"), "the lead has no hosts nope-0, nope-1, ...: it"),
        (
            ("--lead-size", "4"),
            "--lead-size 4: the lead has 10 ranks; give the lead's",
        ),
        (
            ("--provider", "nope"),
            "providers.nope.type: no provider 'nope' is installed",
        ),
        (("-N9",), "9 nodes: "),
        (("-N-1",), "-1 nodes cannot be requested; request 1 or more"),
        (("--uri", "embedded:///none/control"), "/none/control"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_left(
    words: tuple[str, ...], told: str, quiet: CliHarness
) -> None:
    assert told in error_of(run_burst(quiet, *words))
    assert left(quiet) == []


@pytest.fixture
def stuck(quiet: CliHarness) -> Iterator[CliHarness]:
    """Followers reach nothing at the lead's port, so that a burst never joins."""
    quiet.write(lead={"address": "127.0.0.1", "port": 1})
    yield quiet
    quiet.write()


@pytest.mark.parametrize(
    "numbers",
    [[signal.SIGINT], [signal.SIGHUP], [signal.SIGTERM, signal.SIGHUP]],
)
def test_an_interruption_takes_down_what_was_begun(
    numbers: list[signal.Signals], stuck: CliHarness
) -> None:
    process = begin(stuck)
    try:
        wait_until(lambda: bool(left(stuck)), "a burst")
        for number in numbers:
            process.send_signal(number)
    finally:
        said = end(process)
    assert said.status == INTERRUPTED
    assert "Traceback" not in said.stderr
    assert left(stuck) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_takes_down_what_was_begun_though_its_terminal_goes(
    number: signal.Signals, stuck: CliHarness
) -> None:
    """As who ends a session does it; writing to the terminal is an error from then."""
    with (
        taken_down(stuck, "burst-0"),
        on_terminal(command_line(stuck), {}) as screen,
    ):
        screen.shows("0 of 4 nodes online")
        wait_until(lambda: bool(left(stuck)), "a burst")
        screen.process.send_signal(number)
        screen.hang_up()
        assert screen.process.wait(HANG_S) == INTERRUPTED
        assert left(stuck) == []


def test_ctrl_c_takes_down_what_was_begun_though_it_also_ends_a_tee(
    stuck: CliHarness,
) -> None:
    with taken_down(stuck, "burst-0"), begin(stuck) as process:
        wait_until(lambda: bool(left(stuck)), "a burst")
        assert process.stderr
        process.stderr.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_S) == INTERRUPTED
        assert left(stuck) == []


def test_who_reads_standard_output_is_told_though_nobody_reads_of_the_progress(
    unserved: Quiet,
) -> None:
    """As in `run-burst 2>&1 >file | head -1`."""
    _, cli = unserved
    with taken_down(cli, "burst-0"):
        for words, told in (
            ((), "burst-0-[0-3] joined as ranks 2-5: burst-0-"),
            (("--down",), "burst-0-"),
        ):
            with begin(cli, *words) as process:
                assert process.stderr
                assert process.stdout
                process.stderr.close()
                assert process.stdout.readline().startswith(told)
                assert process.wait(HANG_S) == 0


def test_what_it_made_is_told_though_the_terminal_of_the_progress_has_gone(
    unserved: Quiet, tmp_path: Path
) -> None:
    """As in `run-burst >file & disown`, whose terminal is closed."""
    _, cli = unserved
    out = tmp_path / "out"
    line = f"exec {shlex.join(command_line(cli))} > {out}"
    with (
        taken_down(cli, "burst-0"),
        on_terminal(["setsid", "--wait", "sh", "-c", line], {}) as screen,
    ):
        screen.shows("0 of 4 nodes online")
        screen.hang_up()
        wait_until(lambda: "it stays until" in out.read_text(), "the report")


def states(cli: CliHarness) -> set[str]:
    return {burst["state"] for burst in cli.status()["bursts"]}


def test_an_interruption_of_down_ends_the_wait(unserved: Quiet) -> None:
    instance, cli = unserved
    job = instance.submit(nodes=2, command=SLEEP)
    with taken_down(cli, "burst-0"):
        run_burst(cli)
        wait_until(lambda: instance.info(job).state is JobState.RUN, "the job to run")
        process = begin(cli, "--down")
        try:
            wait_until(lambda: "drain" in states(cli), "the burst to drain")
            process.send_signal(signal.SIGTERM)
        finally:
            said = end(process)
        assert said.status == INTERRUPTED
        assert "drain" in states(cli)
        instance.cancel(job)


def test_what_does_not_join_in_time_is_taken_down_and_told(stuck: CliHarness) -> None:
    stuck.write(lead={"address": "127.0.0.1", "port": 1}, deadlines={"join": "0.5s"})
    error = error_of(run_burst(stuck, "-N1"))
    assert "ended: 0 of 1 nodes joined within 500ms; missing burst-0-0" in error
    assert left(stuck) == []


def test_a_program_that_fails_ends_with_1_and_says_why_on_standard_error(
    quiet: CliHarness,
) -> None:
    said = end(begin(quiet, "--down"))
    assert (said.status, said.stdout) == (1, "")
    told = "there is no burst in burst-0-[0-3]; burst status -a"
    assert said.stderr == f"run-burst: ERROR: {told}\n"


def test_where_a_daemon_serves_the_lead_it_does_the_work(served: CliHarness) -> None:
    asked, up = run_burst(served, "--name", "burst-1", "-N2").lines
    burst_id = asked.rpartition(" ")[2]
    assert asked == f"2 nodes of local/local as {burst_id}"
    assert up.startswith("burst-1-[0-1] joined as ranks 6-7 after ")
    assert served.row(burst_id)["state"] == "online"
    told = "there is no burst in burst-0-[0-3]; burst status -a"
    assert error_of(run_burst(served, "--down")) == told
    (gone,) = run_burst(served, "--down", "--name", "burst-1").lines
    assert gone.startswith(f"{burst_id} is gone after ")


def test_an_interruption_beside_a_daemon_stops_the_watching_only(
    cli: CliHarness,
) -> None:
    # A name that is not known here may be known to followers, so the daemon begins.
    cli.write(lead={"address": "no-such-host.invalid"})
    with cli.daemon():
        process = begin(cli, "-N1")
        try:
            # It is watched from this line on.
            assert process.stdout
            assert "1 node of local/local as burst-" in process.stdout.readline()
            wait_until(lambda: bool(left(cli)), "a burst")
            process.send_signal(signal.SIGINT)
        finally:
            said = end(process)
        assert said.status == INTERRUPTED
        (burst,) = left(cli)
        goes_on = f"{burst} is still being made; to cancel it: burst down {burst}"
        assert said.stderr.strip() == f"no longer waiting: {goes_on}"
        assert cli.status()["bursts"][0]["state"] in {"provision", "join"}
