# SPDX-License-Identifier: MIT
"""`commands`: shell commands before and after a broker, run by real shells.

Scripts are run as they are, but for where things are mounted; the broker is played.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from burst.errors import ConfigError
from burst.kits import certificate
from burst.kits.pods import CommandsTable
from burst.kits.pods.settings import PodForm
from burst.kits.pods.status.pod_status import why_not_started
from burst.kits.pods.template.commands import PRE_FAILED
from burst.provider import BurstSpec, Program
from tests.kits.pods import SETTINGS, by_kind, read_settings, replace
from tests.support.waiting import HANG_S, wait_until

BROKER = f"""#!{sys.executable}
import os, signal, sys
def stop(number, frame):
    os.write(1, b"broker was told to stop\\n")
    # At once: the shell is then still busy with the signal.
    os._exit(int(os.environ.get("STATUS", "0")))
signal.signal(signal.SIGTERM, stop)
print("broker", sys.argv[1], flush=True)
if "WAIT" in os.environ:
    signal.pause()
sys.exit(int(os.environ.get("STATUS", "0")))
"""
KEYS = certificate.create("test")


class Container(msgspec.Struct, frozen=True):
    """A follower's container, played: its directories below one of this machine."""

    place: Path
    command: Sequence[str]
    environ: dict[str, str]

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.command,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=HANG_S,
            check=False,
        )


def container(
    place: Path,
    spec: BurstSpec,
    commands: CommandsTable,
    form: PodForm = "job",
    **environ: str,
) -> Container:
    """Return a container of a form; the operator's bash is played, too."""
    for name in ("config", "secret", "run"):
        (place / "burst" / name).mkdir(parents=True)
    (place / "burst/config/hosts").write_text("burst-0-0\n")
    text = certificate.format_certificate(KEYS)
    (place / "burst/secret/curve.cert").write_text(text)
    flux = place / "flux"
    flux.write_text(BROKER)
    flux.chmod(0o755)
    settings = replace(SETTINGS, commands=commands, form=form, user=os.geteuid())
    objects = by_kind(spec, settings)
    if form == "operator":
        (made,) = objects["MiniCluster"]["spec"]["containers"]
        command = ["bash", "-c", made["commands"]["pre"]]
    else:
        command = ["/bin/sh", "-c", objects["ConfigMap"]["data"]["start"]]
    variables = {
        "PATH": f"{place}:{os.environ['PATH']}",
        "JOB_COMPLETION_INDEX": "0",
        "PLACE": str(place),
        # Of the operator's script.
        "curvepath": str(place / "curve"),
        "cfg": "/cfg",
        "brokerOptions": "-Sa=1",
        **environ,
    }
    # Where `flux` is said to be found by PATH, as by default.
    moved = [word.replace("/burst/", f"{place}/burst/") for word in command]
    return Container(place, moved, variables)


FORMS = pytest.mark.parametrize("form", ["job", "operator"])


@FORMS
def test_they_run_before_and_after_the_broker(
    form: PodForm, spec: BurstSpec, tmp_path: Path
) -> None:
    pre = 'echo "it\'s $PLACE"\nexport PATH=/nowhere\nset -x; : traced'
    commands = CommandsTable(pre=pre, post="echo after; false; echo never")
    done = container(tmp_path, spec, commands, form).run()
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"it's {tmp_path}",
        "+ : traced",
        "broker broker",
        "after",
        "commands.post ended with exit status 1",
    ]


@FORMS
def test_what_fails_before_ends_the_follower(
    form: PodForm, spec: BurstSpec, tmp_path: Path
) -> None:
    commands = CommandsTable(pre="echo looks; cd /no/such; echo never", post="echo x")
    done = container(tmp_path, spec, commands, form).run()
    assert done.returncode != 0
    assert "broker" not in done.stdout
    *_, why, last = done.stdout.splitlines()
    assert "/no/such" in why
    assert last == f"{PRE_FAILED}{done.returncode}"
    told = why_not_started(done.stdout)
    assert told.startswith(f"{last}: looks / ")
    assert why in told


def test_a_failure_is_told_although_its_output_ends_within_a_line(
    spec: BurstSpec, tmp_path: Path
) -> None:
    commands = CommandsTable(pre="printf half; exit 7")
    done = container(tmp_path, spec, commands).run()
    assert (done.returncode, done.stdout) == (7, f"half\n{PRE_FAILED}7\n")
    assert why_not_started(f"{PRE_FAILED}7\n") == f"{PRE_FAILED}7: it printed nothing"
    assert why_not_started(f"{PRE_FAILED}7\nbroker.err") == ""
    assert why_not_started("") == ""


@FORMS
def test_the_secret_key_is_not_in_the_log(
    form: PodForm, spec: BurstSpec, tmp_path: Path
) -> None:
    """Nor on a line of its own, nor where the shell traces a command with it."""
    look = """\
cat "/burst/secret/curve.cert"
set -x
key=$(sed -n 's/^ *secret-key = "\\(.*\\)"$/\\1/p' "/burst/secret/curve.cert")
printf %s "$key"
"""
    commands = CommandsTable(pre=look, post=f"{look}\nexit 3")
    done = container(tmp_path, spec, commands, form).run()
    assert done.returncode == 0
    assert KEYS.public.decode() in done.stdout
    assert done.stdout.count("(a line with the secret key)") >= 8
    secret = KEYS.secret.decode()
    assert secret not in done.stdout
    assert secret in (tmp_path / "burst/secret/curve.cert").read_text()


@FORMS
def test_a_broker_is_stopped_and_then_they_run(
    form: PodForm, spec: BurstSpec, tmp_path: Path
) -> None:
    commands = CommandsTable(
        post=f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo after"
    )
    made = container(tmp_path, spec, commands, form, WAIT="1", STATUS="4")
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(made.command, env=made.environ, stdout=file)
    try:
        wait_until(lambda: "broker" in log.read_text(), log.read_text)
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stop" in log.read_text(), log.read_text)
        # A second one, while they run, changes nothing.
        process.send_signal(signal.SIGTERM)
        (tmp_path / "go").touch()
        assert process.wait(timeout=HANG_S) == 4
    finally:
        process.kill()
    told = log.read_text().splitlines()
    assert told == ["broker broker", "broker was told to stop", "after"]


@pytest.mark.parametrize("post", ["", "true"])
@pytest.mark.parametrize(
    ("form", "program"),
    [("job", None), ("operator", None), ("job", Program(kind="interactive"))],
    ids=["job", "operator", "isolated"],
)
def test_a_broker_that_is_told_to_end_does_not_complete_its_job(
    form: PodForm, program: Program | None, post: str, spec: BurstSpec, tmp_path: Path
) -> None:
    """It ends with 0. The pods of an isolated burst are not made again."""
    spec = replace(spec, program=program)
    made = container(tmp_path, spec, CommandsTable(post=post), form, WAIT="1")
    with subprocess.Popen(made.command, env=made.environ, stdout=-1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"broker broker\n"
        process.terminate()
        assert process.stdout.read() == b"broker was told to stop\n"
    assert process.returncode == (0 if program else 143)


def test_what_they_leave_running_does_not_hold_the_broker_up(
    spec: BurstSpec, tmp_path: Path
) -> None:
    commands = CommandsTable(pre="sleep 1000 & echo $!")
    made = container(tmp_path, spec, commands)
    with subprocess.Popen(made.command, env=made.environ, stdout=-1) as process:
        assert process.stdout is not None
        left = int(process.stdout.readline())
        try:
            assert process.stdout.readline() == b"broker broker\n"
            assert process.wait(HANG_S) == 0
        finally:
            os.kill(left, signal.SIGKILL)


def test_without_them_nothing_is_added_and_another_key_is_refused(
    spec: BurstSpec,
) -> None:
    start = by_kind(spec, SETTINGS)["ConfigMap"]["data"]["start"]
    assert "run_commands" not in start
    with pytest.raises(ConfigError, match=r"commands\.before: no such key"):
        read_settings('commands = { pre = "true", before = "true" }')
