# SPDX-License-Identifier: MIT
"""A munged beside the broker, with the key of the lead's."""

import base64
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from burst.errors import Refused
from burst.kits.pods import PodSettings
from burst.kits.pods.template.job import start_script
from burst.kits.pods.template.munge import start_munged
from burst.kits.pods.template.operator import start_lines
from burst.provider import Program
from tests.kits.pods import SETTINGS, by_kind, make_spec, pod_spec, replace
from tests.support.commands import run_captured
from tests.support.waiting import wait_until

CONTENT = bytes(range(128))


@pytest.fixture
def settings(tmp_path: Path) -> PodSettings:
    key = tmp_path / "key"
    key.write_bytes(CONTENT)
    return replace(SETTINGS, munge_key=str(key))


def test_the_key_is_in_the_secret_and_nowhere_else(
    settings: PodSettings, tmp_path: Path
) -> None:
    spec = make_spec(tmp_path)
    isolated = replace(spec, ranks=(), program=Program(kind="interactive"))
    text = base64.b64encode(CONTENT).decode()
    for form in ("job", "operator"):
        for each in (spec, isolated) if form == "job" else (spec,):
            found: dict[str, Any] = by_kind(each, replace(settings, form=form))
            assert found.pop("Secret")["data"]["munge.key"] == text
            assert text not in str(found)


def test_its_socket_is_where_programs_look_for_it(
    settings: PodSettings, tmp_path: Path
) -> None:
    pod = pod_spec(make_spec(tmp_path), settings)
    (broker,) = pod["containers"]
    mount = {"name": "munge", "mountPath": "/run/munge"}
    assert mount in broker["volumeMounts"]
    memory = {"medium": "Memory", "sizeLimit": "16Mi"}
    assert {"name": "munge", "emptyDir": memory} in pod["volumes"]


def test_each_form_starts_it_before_the_broker(
    settings: PodSettings, tmp_path: Path
) -> None:
    spec = make_spec(tmp_path)
    for script in (start_script(spec, settings), start_lines(spec, settings)):
        assert 0 < script.index("munged --force") < script.index("flux broker")
    assert "munge" not in start_script(spec, SETTINGS)
    assert "munge" not in start_lines(spec, SETTINGS)


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "key"
    for told in ("cannot be read: No such file", "has 5 bytes, and a munge key"):
        with pytest.raises(Refused, match=told):
            by_kind(make_spec(tmp_path), replace(SETTINGS, munge_key=str(key)))
        key.write_bytes(b"short")


def test_an_image_without_munged_is_told_of(
    settings: PodSettings, tmp_path: Path
) -> None:
    lines = start_munged(settings, str(tmp_path), str(tmp_path / "own"))
    lines = lines.replace(":/usr/sbin:/usr/local/sbin", "")
    done = run_captured(["/bin/sh", "-c", lines], env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert "munge_key is set, and the image has no munged" in done.stderr


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    """A directory as a pod has it, which the pod's group may write."""
    path = tmp_path / "own"
    path.mkdir()
    path.chmod(0o2777)
    yield path
    pid = int((path / "munged.pid").read_text())
    subprocess.run(["/bin/kill", f"-{signal.SIGTERM.value}", str(pid)], check=True)
    wait_until(lambda: not (path / "munged.pid").exists(), "munged to end")


@pytest.mark.skipif(
    not all(map(shutil.which, ("munged", "munge", "unmunge"))),
    reason="no munged on PATH: install munge",
)
def test_a_real_munged_serves_with_it(
    settings: PodSettings, tmp_path: Path, own: Path
) -> None:
    mounted = tmp_path / "secret"
    mounted.mkdir()
    # As Kubernetes mounts a Secret: a link to a file that the group can read.
    (mounted / "data").write_bytes(CONTENT)
    (mounted / "data").chmod(0o440)
    (mounted / "munge.key").symlink_to("data")
    lines = "set -eu\n" + start_munged(settings, str(mounted), str(own))
    socket = f"--socket={own}/munge.socket.2"
    both = f"munge -n {socket} | unmunge {socket}"
    done = run_captured(["/bin/sh", "-c", lines + both], check=True)
    assert "Success (0)" in done.stdout
    assert (own / "munge.key").stat().st_mode & 0o777 == 0o600
