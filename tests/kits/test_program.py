# SPDX-License-Identifier: MIT
import os
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from burst.errors import (
    ConfigError,
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Refused,
    Transient,
)
from burst.kits.program import ErrorPattern, flux_version, read_output, run
from burst.model.version import major_minor
from tests.support.fluxlead import needs_flux
from tests.support.waiting import HANG_S, growing_limits, wait_until


def script(directory: Path, body: str) -> str:
    path = directory / "flux"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_the_version_of_the_commands_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUX_URI", "local:///nowhere")
    says = 'echo "commands:    \t\t0.84.1"; echo "broker: 0.1.0"; test -z "$FLUX_URI"'
    assert flux_version(script(tmp_path, says)) == "0.84.1"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("exit 3", "version` failed: .*exit status 3.*check that `"),
        ("echo hello", "printed no version; set flux to the program of flux-core"),
    ],
)
def test_what_does_not_tell_is_refused(body: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        flux_version(str(tmp_path / "flux"))
    with pytest.raises(ConfigError, match=text):
        flux_version(script(tmp_path, body))


@pytest.mark.flux
@needs_flux
def test_a_real_flux_tells_its_version() -> None:
    program = shutil.which("flux")
    assert program
    assert major_minor(flux_version(program)) >= (0, 84)


PATTERNS = (
    ErrorPattern("no such job", NotFound),
    ErrorPattern(r"account \w+ is not", Refused, "set account"),
    ErrorPattern("not available", InsufficientCapacity),
)


def test_what_a_program_writes_is_returned(tmp_path: Path) -> None:
    echo = script(tmp_path, 'echo "$1 $HOW"; cat; echo noise >&2')
    said = run([echo, "a b"], given="c", environment={"HOW": "well", "PATH": "/bin"})
    assert said == "a b well\nc"


@pytest.mark.parametrize(
    ("complaint", "error", "text"),
    [
        ("No such job: 7", NotFound, "`flux up` failed: No such job: 7"),
        (
            "Account x1 is not\nvalid",
            Refused,
            "`flux up` failed: Account x1 is not valid; set account",
        ),
        ("nodes are not available", InsufficientCapacity, "not available"),
        ("boom", Transient, "`flux up` failed: boom"),
        ("", Transient, "`flux up` failed: exit status 3"),
    ],
)
def test_a_complaint_is_classed_and_output_is_not_told(
    complaint: str, error: type[ProviderError], text: str, tmp_path: Path
) -> None:
    program = script(tmp_path, f"echo token-5; printf '{complaint}' >&2; exit 3")
    with pytest.raises(ProviderError) as caught:
        run([program, "up", "--token=x"], patterns=PATTERNS)
    assert type(caught.value) is error
    assert text in str(caught.value)
    assert "token" not in str(caught.value)


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGKILL, "SIGKILL"), (40, "signal 40")]
)
def test_the_signal_is_told_that_killed_a_program(
    number: int, name: str, tmp_path: Path
) -> None:
    """As of the kernel, where memory is short."""
    program = script(tmp_path, f"kill -{number:d} $$")
    with pytest.raises(Transient, match=f"`flux up` failed: it was killed by {name}"):
        run([program, "up"])


def test_a_program_past_its_limit_is_killed_with_all_that_it_started(
    tmp_path: Path,
) -> None:
    pid = tmp_path / "pid"
    starts = f"sleep 1000 & echo $! > {pid}.new; mv {pid}.new {pid}; wait"
    program = script(tmp_path, starts)
    for limit in growing_limits():
        late = rf"`flux up` did not end within {limit:g} s"
        with pytest.raises(Transient, match=late):
            run([program, "up"], limit=limit)
        if pid.exists():
            break
    child = int(pid.read_text())
    # It has its signal, and on a busy machine no turn yet to end by it.
    wait_until(lambda: has_ended(child), "its end")


def test_what_a_program_past_its_limit_has_complained_of_is_told(
    tmp_path: Path,
) -> None:
    program = script(tmp_path, "echo token; echo 'the site is\nfull' >&2; sleep 1000")
    for limit in growing_limits():
        with pytest.raises(Transient, match="did not end within") as caught:
            run([program, "up"], limit=limit)
        if caught.value.what.endswith(f"{limit:g} s: the site is full"):
            break


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    for name in (str(tmp_path / "none"), str(tmp_path), "no-such-program-anywhere"):
        with pytest.raises(Refused, match=r"cannot be run: .*; install it"):
            run([name])


def test_a_program_that_writes_without_end_is_killed_before_it_fills_the_memory(
    tmp_path: Path,
) -> None:
    program = script(tmp_path, "yes")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Transient, match=r"`flux up` wrote more than 64 MiB"):
        run([program, "up"], limit=HANG_S)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 512 * 1024


def test_while_a_program_runs_nothing_turns(tmp_path: Path) -> None:
    looked: list[int | None] = []

    class Counted(subprocess.Popen[bytes]):
        def poll(self) -> int | None:
            looked.append(super().poll())
            return looked[-1]

    program, pipe = script(tmp_path, "sleep 0.2"), subprocess.PIPE
    with Counted([program], stdin=pipe, stdout=pipe, stderr=pipe) as child:
        assert read_output(child, b"", 90, 100) == ("", "")
    assert len(looked) < 200


def test_what_a_program_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    program = script(tmp_path, f"sleep 1000 & echo $! > {tmp_path}/pid; echo done")
    try:
        assert run([program], limit=HANG_S) == "done\n"
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_input_larger_than_a_pipe_is_given_whole_or_until_nobody_reads_it(
    tmp_path: Path,
) -> None:
    given = "0123456789abcdef" * 65_536
    assert run(["/bin/cat"], given=given) == given
    assert run([script(tmp_path, "echo done")], given=given) == "done\n"
    closed = script(tmp_path, "exec >&- 2>&-; sleep 0.3; exit 3")
    with pytest.raises(Transient, match="exit status 3"):
        run([closed], given=given)
