# SPDX-License-Identifier: MIT
"""The files of followers, and the script: with any program as follower."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from burst.errors import Refused
from burst.kits import certificate, followers
from burst.kits.job_tasks import JobTasks
from burst.model.lead import GuestAccess
from burst.provider import BurstSpec
from burst.testing import example_lead, example_spec
from tests.support.fluxlead import short_directory
from tests.support.waiting import HANG_S, growing_limits, wait_until

MKTEMP = shutil.which("mktemp")
# It stands for flux: it says with what it runs, and waits.
FOLLOWER = """#!/bin/sh
trap 'echo told > "$SAYS/end"; exit 5' TERM
env > "$SAYS/env"
printf '%s\\n' "$@" > "$SAYS/argv"
for word; do case $word in -Srundir=*) touch "${word#-Srundir=}/socket"; esac; done
echo ready > "$SAYS/ready"
while :; do sleep 0.05; done
"""

# It notes each signal, and leaves when it is let, as a broker takes a while.
LEAVES_SLOWLY = """#!/bin/sh
trap 'echo told >> "$SAYS/end"' TERM
echo ready > "$SAYS/ready"
until [ -e "$SAYS/leave" ]; do sleep 0.05; done
exit 0
"""


@pytest.fixture
def spec(tmp_path: Path) -> BurstSpec:
    return example_spec(example_lead(tmp_path), 0, "any")


def write(
    spec: BurstSpec,
    tmp_path: Path,
    rundirs: Path,
    program: str = FOLLOWER,
    **more: bool,
) -> Path:
    """Write the files of followers that run this program; return the script."""
    flux = tmp_path / "flux"
    flux.write_text(program.replace("$SAYS", str(tmp_path)))
    flux.chmod(0o755)
    start = followers.Files(flux=str(flux), **more).write(tmp_path / "files", spec)
    use_rundirs(start, rundirs)
    return start


def use_rundirs(start: Path, rundirs: Path) -> None:
    """Have the script make its directories in this one."""
    text, known = start.read_text(), "mktemp -d /tmp/"
    assert known in text
    start.write_text(text.replace(known, f"mktemp -d {rundirs}/"))


@pytest.mark.skipif(not MKTEMP, reason="there is no mktemp")
def test_a_follower_is_told_where_its_owners_systemd_is(
    spec: BurstSpec, tmp_path: Path
) -> None:
    needs = msgspec.structs.replace(spec.lead, systemd=True)
    with short_directory() as rundirs:
        start = write(msgspec.structs.replace(spec, lead=needs), tmp_path, rundirs)
        with subprocess.Popen(["sh", str(start), spec.hosts[0]]) as running:
            wait_until((tmp_path / "ready").exists, "the follower to run")
            running.terminate()
    told = (tmp_path / "env").read_text().splitlines()
    runtime = f"/run/user/{os.geteuid()}"
    assert f"XDG_RUNTIME_DIR={runtime}" in told
    assert f"DBUS_SESSION_BUS_ADDRESS=unix:path={runtime}/bus" in told


def test_all_is_private_and_the_certificate_is_the_leads(
    spec: BurstSpec, tmp_path: Path
) -> None:
    start = followers.Files().write(tmp_path / "files", spec)
    again = followers.Files().write(tmp_path / "files", spec)
    assert start == again
    for path in [start.parent, *start.parent.iterdir()]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    ours = certificate.read(Path(spec.lead.certificate))
    copy = certificate.read(start.with_name("burst.cert"))
    assert (copy, copy.secret) == (ours, ours.secret)
    assert ours.secret.decode() not in start.read_text()
    config = start.with_name("broker.toml").read_text()
    assert str(start.with_name("burst.cert")) in config
    followers.remove(start.parent)
    followers.remove(start.parent)
    assert not start.parent.exists()


def test_the_script_runs_a_follower_and_cleans_up(
    spec: BurstSpec, tmp_path: Path
) -> None:
    with short_directory() as rundirs:
        start = write(spec, tmp_path, rundirs)
        ours = {**os.environ, "CLOUD_PASSWORD": "hush", "LANG": "de DE"}
        with subprocess.Popen(["/bin/sh", start, "burst-0-1"], env=ours) as script:
            wait_until((tmp_path / "ready").exists, "the follower")
            [rundir] = rundirs.iterdir()
            assert rundir.name.startswith(f"{spec.burst_id}-")
            assert stat.S_IMODE(rundir.stat().st_mode) == 0o700
            argv = (tmp_path / "argv").read_text().splitlines()
            assert argv[1:] == [
                f"--config-path={start.parent}/broker.toml",
                "-Shostname=burst-0-1",
                f"-Srundir={rundir}",
                f"-Slocal-uri=local://{rundir}/local",
                "-Slog-stderr-mode=local",
                "-Slog-stderr-level=7",
            ]
            said = (tmp_path / "env").read_text().splitlines()
            assert {"LANG=de DE", "SHELL=/bin/sh"} <= set(said)
            assert f"PATH={os.environ['PATH']}" in said
            assert not [line for line in said if "hush" in line]
            script.send_signal(signal.SIGTERM)
            assert script.wait(HANG_S) == 5, "the follower's own status"
        assert (tmp_path / "end").read_text() == "told\n"
        assert list(rundirs.iterdir()) == []


def test_a_signal_before_the_follower_is_started_leaves_nothing(
    spec: BurstSpec, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    mktemp = programs / "mktemp"
    mktemp.write_text(f'#!/bin/sh\nkill -TERM $PPID\nexec {MKTEMP} "$@"\n')
    mktemp.chmod(0o755)
    early = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    with short_directory() as rundirs:
        start = write(spec, tmp_path, rundirs)
        command = ["/bin/sh", str(start), "burst-0-0"]
        done = subprocess.run(command, env=early, timeout=HANG_S, check=False)
        assert done.returncode == 128 + signal.SIGTERM
        assert not (tmp_path / "ready").exists()
        assert list(rundirs.iterdir()) == []


@pytest.mark.parametrize("early", [False, True])
def test_a_signal_to_all_while_the_rundir_is_removed_leaves_nothing(
    spec: BurstSpec, tmp_path: Path, early: bool
) -> None:
    """Also where a follower is not started, as an earlier signal was to end it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, signals in (("rm", "kill -TERM 0"), ("mktemp", "kill -TERM $PPID")):
        if early or name == "rm":
            program = programs / name
            real = shutil.which(name)
            program.write_text(f'#!/bin/sh\n{signals}\nexec {real} "$@"\n')
            program.chmod(0o755)
    first = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    with short_directory() as rundirs:
        start = write(spec, tmp_path, rundirs, "#!/bin/sh\nexit 7\n")
        command = ["/bin/sh", str(start), "burst-0-0"]
        with subprocess.Popen(command, env=first, start_new_session=True) as script:
            status = script.wait(HANG_S)
        assert status == (128 + signal.SIGTERM if early else 7)
        assert list(rundirs.iterdir()) == []


@pytest.mark.parametrize("all_get_it", [False, True])
def test_a_signal_at_any_moment_of_the_start_ends_it(
    spec: BurstSpec, tmp_path: Path, all_get_it: bool
) -> None:
    program = "#!/bin/sh\nexec sleep 1000\n"
    with short_directory() as rundirs:
        start = write(
            spec, tmp_path, rundirs, program, signals_may_reach_all=all_get_it
        )
        for number in range(60):
            script = subprocess.Popen(["sh", start, "host"], start_new_session=True)
            time.sleep(number * 0.0003)
            (os.killpg if all_get_it else os.kill)(script.pid, signal.SIGTERM)
            script.wait(HANG_S)
            assert list(rundirs.iterdir()) == []


def test_a_script_that_cannot_have_its_follower_begin_leaves_nothing(
    spec: BurstSpec, tmp_path: Path
) -> None:
    with short_directory() as rundirs:
        start = write(spec, tmp_path, rundirs)
        known = 'true > "$rundir/begin"'
        text = start.read_text()
        assert known in text
        start.write_text(text.replace(known, 'true > "$rundir/no/begin"'))
        done = subprocess.run(["sh", start, "host"], timeout=HANG_S, check=False)
        assert done.returncode == 1
        assert list(rundirs.iterdir()) == []
    assert not (tmp_path / "ready").exists()


def test_a_follower_that_could_not_begin_ends_with_its_script(
    spec: BurstSpec, tmp_path: Path
) -> None:
    with short_directory() as rundirs:
        start = write(spec, tmp_path, rundirs)
        text = start.read_text()
        known = 'true > "$rundir/begin"'
        assert known in text
        start.write_text(text.replace(known, f"kill -KILL $$\n{known}"))
        script = subprocess.Popen(["sh", start, "host"], start_new_session=True)
        assert script.wait(HANG_S) == -signal.SIGKILL
        wait_until(lambda: not _is_group(script.pid), "the follower's end")
        assert not (tmp_path / "ready").exists()


def _is_group(number: int) -> bool:
    """Tell whether a process of the group runs; PID 1 may not reap those that ended."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group, *_ = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(group) == number and state != "Z":
            return True
    return False


def test_a_follower_that_ends_at_once_is_told_with_its_status(
    spec: BurstSpec, tmp_path: Path
) -> None:
    """The shell sees its end while other commands of the script run."""
    with short_directory() as rundirs:
        start = write(spec, tmp_path, rundirs, "#!/bin/sh\nkill -KILL $$\n")
        text = start.read_text()
        known = "outlives() {"
        assert known in text
        start.write_text(text.replace(known, f"sleep 0.3\n{known}"))
        done = subprocess.run(["sh", start, "host"], timeout=HANG_S, check=False)
    assert done.returncode == 128 + signal.SIGKILL


def send_to_all(script: int, number: int) -> None:
    """Signal the script's group; the follower gets it well before the script does."""
    os.kill(script, signal.SIGSTOP)
    os.killpg(script, number)
    time.sleep(0.5)
    os.kill(script, signal.SIGCONT)


@pytest.mark.parametrize("pause", ["", "sleep 0.5\n"])
@pytest.mark.parametrize("send", [os.kill, send_to_all])
def test_where_a_signal_may_reach_all_the_follower_gets_it_once(
    spec: BurstSpec, tmp_path: Path, pause: str, send: Callable[[int, int], None]
) -> None:
    """Also where the script has not seen yet that the follower has begun.

    In a job it may, also where followers are not its tasks.
    """
    # As long as it may be, so that what watches it is there.
    spec = msgspec.structs.replace(spec, lease_end=time.time() + HANG_S)
    with short_directory() as rundirs:
        start = write(spec, tmp_path, rundirs, LEAVES_SLOWLY)
        JobTasks(start.parent).write(spec, str(tmp_path / "flux"), rank="")
        use_rundirs(start, rundirs)
        begun = "outlives() {"
        assert begun in start.read_text()
        start.write_text(start.read_text().replace(begun, pause + begun))
        command = ["/bin/sh", str(start), "burst-0-0"]
        with subprocess.Popen(command, start_new_session=True) as script:
            wait_until((tmp_path / "ready").exists, "the follower")
            send(script.pid, signal.SIGTERM)
            wait_until((tmp_path / "end").exists, "the signal")
            time.sleep(2)  # what would be told once more has been
            (tmp_path / "leave").touch()
            assert script.wait(HANG_S) == 0
        assert (tmp_path / "end").read_text() == "told\n"
        assert list(rundirs.iterdir()) == []


def test_a_follower_that_began_after_the_processes_were_listed_is_told(
    spec: BurstSpec, tmp_path: Path
) -> None:
    """Whoever signals all lists them first, and signals those on the list then."""
    listed, programs = tmp_path / "listed", tmp_path / "bin"
    programs.mkdir()
    mktemp = programs / "mktemp"
    children = "/proc/$PPID/task/$PPID/children"
    mktemp.write_text(
        f'#!/bin/sh\necho $PPID $(cat {children}) > {listed}\nexec {MKTEMP} "$@"\n'
    )
    mktemp.chmod(0o755)
    environ = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    with short_directory() as rundirs:
        start = write(spec, tmp_path, rundirs, signals_may_reach_all=True)
        command = ["/bin/sh", str(start), "burst-0-0"]
        with subprocess.Popen(command, env=environ) as script:
            wait_until((tmp_path / "ready").exists, "the follower")
            for pid in map(int, listed.read_text().split()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            assert script.wait(HANG_S) == 5
        assert (tmp_path / "end").read_text() == "told\n"


@pytest.mark.parametrize(("again", "told"), [(30, 1), (0, 2)])
def test_a_follower_that_leaves_is_not_told_again_for_a_while(
    spec: BurstSpec, tmp_path: Path, again: int, told: int
) -> None:
    """Who ends a burst does it until it is gone."""
    end = tmp_path / "end"
    with short_directory() as rundirs:
        start = write(spec, tmp_path, rundirs, LEAVES_SLOWLY)
        start.write_text(start.read_text().replace("-ge 30 ]", f"-ge {again} ]"))
        command = ["/bin/sh", str(start), "burst-0-0"]
        with subprocess.Popen(command) as script:
            wait_until((tmp_path / "ready").exists, "the follower")
            script.send_signal(signal.SIGTERM)
            wait_until(end.exists, "the signal")
            script.send_signal(signal.SIGTERM)
            wait_until(lambda: end.read_text() == "told\n" * told, end.read_text)
            time.sleep(1)  # what would be told once more has been
            (tmp_path / "leave").touch()
            assert script.wait(HANG_S) == 0
        assert end.read_text() == "told\n" * told


def test_it_ends_with_the_lease(spec: BurstSpec, tmp_path: Path) -> None:
    for lease in growing_limits(1.0):
        spec = msgspec.structs.replace(spec, lease_end=time.time() + lease)
        with short_directory() as rundirs:
            start = write(spec, tmp_path, rundirs)
            command = ["/bin/sh", str(start), "burst-0-0"]
            done = subprocess.run(command, timeout=2 * HANG_S, check=False)
            assert done.returncode in (5, 128 + signal.SIGTERM), "the follower's own"
            assert list(rundirs.iterdir()) == []
        if (tmp_path / "ready").exists():
            break
    assert (tmp_path / "end").read_text() == "told\n"


def test_none_is_started_after_the_lease(spec: BurstSpec, tmp_path: Path) -> None:
    """As by a job that has waited for long: the lead has given its ranks to others."""
    spec = msgspec.structs.replace(spec, lease_end=time.time() - 5)
    with short_directory() as rundirs:
        start = write(spec, tmp_path, rundirs)
        command = ["/bin/sh", str(start), "burst-0-0"]
        done = subprocess.run(command, timeout=HANG_S, check=False)
        assert done.returncode == 128 + signal.SIGTERM
        assert not (tmp_path / "ready").exists()
        assert list(rundirs.iterdir()) == []


def test_what_could_not_join_is_refused(spec: BurstSpec, tmp_path: Path) -> None:
    lead = spec.lead
    for changes in (
        {"lead": msgspec.structs.replace(lead, endpoint="")},
        {"ranks": (2, 1)},
        {"lead": msgspec.structs.replace(lead, certificate="/no/such")},
    ):
        wrong = msgspec.structs.replace(spec, **changes)
        with pytest.raises(Refused):
            followers.Files().write(tmp_path / "files", wrong)


@pytest.mark.parametrize(("guests", "mode"), [(False, 0o700), (True, 0o711)])
def test_guests_reach_the_socket_in_the_rundir_where_the_lead_serves_them(
    spec: BurstSpec, tmp_path: Path, guests: bool, mode: int
) -> None:
    access = GuestAccess(allow_guest_user=guests)
    system = msgspec.structs.replace(spec.lead, access=access)
    with short_directory() as rundirs:
        start = write(msgspec.structs.replace(spec, lead=system), tmp_path, rundirs)
        with subprocess.Popen(["sh", str(start), spec.hosts[0]]) as script:
            wait_until((tmp_path / "ready").exists, "the follower")
            (rundir,) = rundirs.iterdir()
            assert stat.S_IMODE(rundir.stat().st_mode) == mode
            assert stat.S_IMODE((tmp_path / "files").stat().st_mode) == 0o700
            script.terminate()


def test_followers_that_share_no_directory_get_the_same_texts(
    spec: BurstSpec, tmp_path: Path
) -> None:
    place = tmp_path / "files"
    texts = followers.Files().contents(place, spec)
    followers.Files().write(place, spec)
    assert {path.name: path.read_text() for path in place.iterdir()} == texts
    assert list(texts)[-1] == "start"
