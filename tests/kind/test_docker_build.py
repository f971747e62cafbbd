# SPDX-License-Identifier: MIT
"""The Dockerfile builds, and what it makes runs the daemon as the manifests want it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.programs import ROOT
from tests.kubelab.kind import baseimage

pytestmark = [
    pytest.mark.kind,
    pytest.mark.skipif(
        baseimage.WHEELS not in os.environ,
        reason=f"want of wheels to install from ({baseimage.WHEELS} names them)",
    ),
]
BASE = "local.test/python:1"
IMAGE = "local.test/burst-built:1"
ROOT_FREE = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges")


def docker(*words: str) -> str:
    """Return what docker says, its own messages too; fail with it if it fails."""
    command = ["docker", *words]
    # The builder that needs no plug-in of docker's.
    environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    work: Path = tmp_path_factory.mktemp("base")
    baseimage.make(BASE, work)
    try:
        docker("build", "--build-arg", f"PYTHON={BASE}", "-t", IMAGE, str(ROOT))
        yield IMAGE
    finally:
        docker("rmi", "--force", IMAGE, BASE)


def run(image: str, *command: str, program: str = "") -> str:
    """Return what a container says that may do as little as the daemon's in a pod."""
    options = [*ROOT_FREE, "--rm", *(["--entrypoint", program] if program else [])]
    return docker("run", *options, image, *command)


def test_burst_runs_in_it(image: str) -> None:
    assert run(image, "--version").startswith("burst, version ")
    assert "Usage: burst daemon" in run(image, "daemon", "--help")


def test_each_extra_is_in_it(image: str) -> None:
    said = run(
        image,
        "-c",
        "import burst.kits.kube, burst_gke.cloud, cffi; print(burst.kits.__file__)",
        program="python",
    )
    assert said.startswith("/opt/burst/lib/python3")


def test_its_user_is_that_of_the_manifests(image: str) -> None:
    assert run(image, program="id").startswith("uid=1000(burst) gid=1000(burst)")
    config = docker("inspect", "--format", "{{json .Config.Cmd}}", image)
    assert config.strip() == '["daemon"]'
    assert "pip" not in run(image, "/opt/burst/bin", program="ls").split()
