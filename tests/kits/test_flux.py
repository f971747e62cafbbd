# SPDX-License-Identifier: MIT
"""Real Flux takes our certificates and configuration, and we take its certificates."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from burst.errors import CertificateError
from burst.kits import certificate
from burst.kits.broker import flux_follower_argv, follower_config
from tests.support.commands import run_captured
from tests.support.fluxlead import (
    FluxLead,
    broker_environment,
    flux_lead,
    needs_flux,
    short_directory,
)
from tests.support.waiting import HANG_S

pytestmark = [pytest.mark.flux, needs_flux]


@contextmanager
def followers(lead: FluxLead, *hosts: str) -> Iterator[None]:
    """Run followers of these names until the end of the block."""
    identity = lead.identity()
    ranks = [identity.hosts.index(host) for host in hosts]
    with ExitStack() as stack:
        place = stack.enter_context(short_directory())
        config = place / "broker.toml"
        config.write_text(follower_config(identity, hosts, ranks))
        for host in hosts:
            stack.enter_context(_follower(config, host, place / host))
        yield


@contextmanager
def _follower(config: Path, host: str, rundir: Path) -> Iterator[None]:
    rundir.mkdir(0o700)
    process = subprocess.Popen(
        flux_follower_argv("flux", config, host, rundir),
        stdin=subprocess.DEVNULL,
        env=broker_environment(),
        start_new_session=True,
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(HANG_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_follower_joins_with_flux_keygens_certificate(tmp_path: Path) -> None:
    path = tmp_path / "c"
    subprocess.run(["flux", "keygen", str(path)], check=True)
    with flux_lead(certificate=path) as lead, followers(lead, "burst-0-3"):
        output = lead.run("--requires=host:burst-0-3", "flux", "getattr", "rank")
        assert output == ["4"]


@pytest.mark.parametrize(
    "damage",
    [
        'name = "under_score"',
        'nam_e = "x"',
        'name = "x',
        f'name = "{"x" * 250}"',
        'keygen.hostname = "twice"',
    ],
)
def test_what_we_refuse_flux_refuses_too(damage: str) -> None:
    made = certificate.format_certificate(certificate.create("good"))
    text = made.replace('name = "good"', damage)
    with pytest.raises(CertificateError):
        certificate.parse(text, "text")
    with short_directory() as place:
        (place / "c").touch(0o600)
        (place / "c").write_text(text)
        (place / "broker.toml").write_text(
            f'[bootstrap]\ncurve_cert = "{place}/c"\n'
            'default_bind = "ipc://x"\nhosts = [{host = "a"}, {host = "b"}]\n'
        )
        done = run_captured(
            [
                "flux",
                "broker",
                f"--config-path={place}/broker.toml",
                "-Shostname=a",
                "/bin/true",
            ],
            env=broker_environment(),
            timeout=HANG_S,
        )
        assert "Error loading certificate" in done.stderr
