# SPDX-License-Identifier: MIT
"""`burst lead init` and `burst keygen`: what a lead needs, before there is one."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from burst.kits import certificate
from burst.lead_setup.own_host import short_name
from tests.cli.cli_harness import burst
from tests.embedded_instance import short_directory

NO_LEAD = "embedded:///nowhere"
OWN = ("--hosts", "lead-[0-1]", "--cores", "2", "--gpus", "0")


@pytest.fixture
def place() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_lead_is_made_from_nothing_and_told_how_to_start(place: Path) -> None:
    lead = place / "lead"
    said = burst("lead", "init", str(lead), *OWN, "--slot", "burst-0-[0-3]:8:1")
    paths = [lead / name for name in ("broker.toml", "R", "burst.cert", "burst.toml")]
    for path, line in zip(paths, said.lines, strict=False):
        assert line.startswith(f"wrote {path} ")
    assert "ranks in order: lead-[0-1],burst-0-[0-3]" in said.lines[0]
    assert certificate.read(lead / "burst.cert").fingerprint in said.lines[2]
    hosts = tomllib.loads(paths[0].read_text())["bootstrap"]["hosts"]
    assert [entry["host"] for entry in hosts] == ["lead-0", "lead-1", "burst-0-[0-3]"]
    assert "lead-0" in hosts[0]["connect"], "lead-1 reaches it by its name"
    assert json.loads(paths[1].read_text())["execution"]["nodelist"] == [
        "lead-[0-1],burst-0-[0-3]"
    ]
    for line in (
        "# on lead-1",
        f"export FLUX_URI=local://{lead}/run/local",
        f"burst daemon -c {lead}/burst.toml",
    ):
        assert line in said.stdout


def test_only_its_owner_can_read_a_certificate_and_enter_its_directories(
    place: Path,
) -> None:
    lead = place / "lead"
    before = os.umask(0)
    try:
        said = burst("lead", "init", str(lead), *OWN).stdout
        said += burst("keygen", str(place / "burst.cert")).stdout
    finally:
        os.umask(before)
    for made in (lead / "burst.cert", place / "burst.cert"):
        assert mode_of(made) == 0o600
        assert certificate.read(made).secret.decode() not in said
    assert mode_of(lead) == mode_of(lead / "run") == mode_of(lead / "state") == 0o700


def test_by_default_the_own_host_is_this_one(place: Path) -> None:
    said = burst("lead", "init", str(place / "lead"))
    assert said.lines[0].endswith(f"(ranks in order: {short_name()},burst-0-[0-7])")
    config = (place / "lead/broker.toml").read_text()
    assert "tcp://127.0.0.1:" in config


@pytest.mark.parametrize(
    "words", [("10.0.0.7", "gate-b:9000"), ("10.0.0.7,gate-b:9000",)]
)
def test_gateways_have_addresses_of_ones_own(
    place: Path, words: tuple[str, ...]
) -> None:
    lead = str(place / "lead")
    # The directory may follow, and is not taken for an address.
    burst("lead", "init", *OWN, "--provider", "none", "--gateways", *words, lead)
    added = burst("lead", "add-slot", lead, "burst-2-[0-1]:2", "--gateways", "10.0.0.9")
    assert added.lines[0].startswith("added burst-2-[0-1] as ranks")
    hosts = tomllib.loads((place / "lead/broker.toml").read_text())["bootstrap"][
        "hosts"
    ]
    found = [entry["connect"] for entry in hosts[1:] if "connect" in entry]
    told = ["10.0.0.7:8050", "gate-b:9000", "10.0.0.9:8050"]
    assert found == [f"tcp://{address}" for address in told]


def test_a_certificate_is_made_and_never_replaced_unasked(place: Path) -> None:
    path = place / "burst.cert"
    (line,) = burst("keygen", str(path), "--name", "site").lines
    first = certificate.read(path)
    told = f"certificate of site, fingerprint {first.fingerprint}"
    assert line == f"{path}: {told}"
    error = burst("keygen", str(path)).error
    assert error.startswith(
        f"{path}: exists already; with another certificate its followers could not"
    )
    assert certificate.read(path) == first
    burst("keygen", str(path), "--force")
    assert certificate.read(path) != first
    assert mode_of(path) == 0o600
    assert list(place.iterdir()) == [path]


def test_a_certificate_is_replaced_and_the_one_before_is_kept(place: Path) -> None:
    path = place / "burst.cert"
    burst("keygen", str(path), "--name", "site")
    before = certificate.read(path)
    done = burst("keygen", str(path), "--rotate", "--uri", NO_LEAD)
    made = certificate.read(path)
    (kept,) = set(place.iterdir()) - {path}
    assert kept.name.startswith("burst.cert.until-")
    assert certificate.read(kept) == before
    assert (mode_of(path), mode_of(kept)) == (0o600, 0o600)
    assert made.name == "site"
    assert made != before
    assert done.lines[0].endswith(
        f"certificate of site, fingerprint {made.fingerprint}"
    )
    assert "copy the new one to own hosts" in done.stdout
    for secret in (before.secret, made.secret):
        assert secret.decode() not in done.stdout
    again = burst("keygen", str(path), "--rotate", "--name", "b", "--uri", NO_LEAD)
    assert "certificate of b," in again.stdout
    assert len(list(place.iterdir())) == 3


def test_a_certificate_that_is_not_there_is_not_replaced(place: Path) -> None:
    path = place / "burst.cert"
    error = burst("keygen", str(path), "--rotate", "--uri", NO_LEAD).error
    assert error.startswith(f"{path}: no such file; make one with `burst keygen")
    burst("keygen", str(path))
    assert "not both" in burst("keygen", str(path), "--rotate", "--force").stderr
    assert list(place.iterdir()) == [path]
