# SPDX-License-Identifier: MIT
"""Real Flux takes our certificates and configuration, and we take its certificates."""

import subprocess
from pathlib import Path

import pytest
import zmq

from burst.errors import CertificateError
from burst.kits import certificate
from tests.support.commands import run_captured
from tests.support.fluxlead import broker_environment, needs_flux, short_directory
from tests.support.waiting import HANG_S

pytestmark = [pytest.mark.flux, needs_flux]


def test_flux_keygens_certificate_is_read(tmp_path: Path) -> None:
    subprocess.run(["flux", "keygen", str(tmp_path / "c")], check=True)
    made = certificate.read(tmp_path / "c")
    assert zmq.curve_public(made.secret) == made.public


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
        command = ["flux", "broker", f"--config-path={place}/broker.toml"]
        done = run_captured(
            [*command, "-Shostname=a", "/bin/true"],
            env=broker_environment(),
            timeout=HANG_S,
        )
        assert "Error loading certificate" in done.stderr
