# SPDX-License-Identifier: MIT
"""We take what real Flux makes as a certificate, and what we refuse, Flux refuses."""

from pathlib import Path

import pytest

from burst.errors import CertificateError
from burst.kits import certificate
from tests.support.commands import run_captured
from tests.support.fluxlead import broker_environment, needs_flux, short_directory
from tests.support.waiting import HANG_S

pytestmark = [pytest.mark.flux, needs_flux]


def test_a_certificate_of_flux_keygen_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "curve.cert"
    run_captured(["flux", "keygen", str(path)], env=broker_environment(), check=True)
    certificate.read(path)


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
