# SPDX-License-Identifier: MIT
"""The start of a broker, run by real shells.

Scripts are run as they are, but for where things are mounted; the broker is played.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from burst.errors import ConfigError
from burst.kits import certificate
from burst.kits.pods.settings import PodForm
from burst.provider import BurstSpec, Program
from tests.kits.pods import SETTINGS, by_kind, read_settings, replace
from tests.support.waiting import HANG_S

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
    settings = replace(SETTINGS, form=form, user=os.geteuid())
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
def test_a_broker_that_is_stopped_ends_with_its_own_status(
    form: PodForm, spec: BurstSpec, tmp_path: Path
) -> None:
    made = container(tmp_path, spec, form, WAIT="1", STATUS="4")
    with subprocess.Popen(made.command, env=made.environ, stdout=-1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"broker broker\n"
        process.terminate()
        assert process.stdout.read() == b"broker was told to stop\n"
    assert process.returncode == 4


@pytest.mark.parametrize(
    ("form", "program"),
    [("job", None), ("operator", None), ("job", Program(kind="interactive"))],
    ids=["job", "operator", "isolated"],
)
def test_a_broker_that_is_told_to_end_does_not_complete_its_job(
    form: PodForm, program: Program | None, spec: BurstSpec, tmp_path: Path
) -> None:
    """It ends with 0. The pods of an isolated burst are not made again."""
    spec = replace(spec, program=program)
    made = container(tmp_path, spec, form, WAIT="1")
    with subprocess.Popen(made.command, env=made.environ, stdout=-1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"broker broker\n"
        process.terminate()
        assert process.stdout.read() == b"broker was told to stop\n"
    assert process.returncode == (0 if program else 143)


def test_commands_are_refused_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r"commands: is gone") as told:
        read_settings('commands = { pre = "true" }')
    assert "initContainers" in str(told.value.advice)
