# SPDX-License-Identifier: MIT
"""`burst keygen --rotate` beside a lead that runs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from burst.kits import certificate
from burst.runtime.connect import connect
from tests.cli.cli_harness import CliHarness, burst


def lead_certificate(cli: CliHarness) -> Path:
    """Return where the lead's configuration has it."""
    with closing(connect(cli.uri, "burstable")) as lead:
        return Path(lead.identity().certificate)


def test_bursts_that_would_be_cut_off_are_named_and_nothing_is_done(
    served: CliHarness,
) -> None:
    path = lead_certificate(served)
    before = certificate.read(path)
    asked = served.run("request", "-N1").lines[0]
    name = asked.rpartition(" ")[2]
    try:
        error = served.run("keygen", str(path), "--rotate").error
        assert error.startswith(f"{path}: is as it was: {name} would not find")
        assert error.endswith("wait for their end, or add --yes")
        assert certificate.read(path) == before
    finally:
        served.run("down", name)


def test_a_certificate_that_is_not_the_leads_is_replaced_whatever_there_is(
    served: CliHarness, tmp_path: Path
) -> None:
    path = tmp_path / "other.cert"
    burst("keygen", str(path))
    done = served.run("keygen", str(path), "--rotate")
    assert f"the lead here has another one: {lead_certificate(served)}" in done.stdout
    assert len(list(tmp_path.iterdir())) == 2
