# SPDX-License-Identifier: MIT
"""What a broker reads: broker.toml and R."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from burst_embedded.boot import read_broker_config, read_resources

from burst.errors import ConfigError
from tests.embedded_instance import R, short_directory, write_files

PORT = 28551


@pytest.fixture
def directory() -> Iterator[Path]:
    with short_directory() as directory:
        write_files(directory, PORT)
        yield directory


@pytest.fixture
def config(directory: Path) -> Path:
    return directory / "broker.toml"


def change(config: Path, old: str, new: str) -> None:
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))


def test_the_boot_shows_no_secret(config: Path) -> None:
    boot = read_broker_config(config, "lead-0")
    assert boot.certificate.secret.decode() not in repr(boot)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[bootstrap]", "[strap]", "curve_cert: is missing"),
        ("default_port", "default_prot", "did you mean default_port"),
        ('lead-[0-1]" }', 'lead-[0-1]", bnid = "x" }', "bnid: no such key"),
        ('lead-[0-1]" }', 'lead-[0-1]", parent = "x" }', "parent"),
        ("lead-[0-1]", "other-[0-1]", "lead-0 is not among them; start it with"),
    ],
)
def test_a_bad_file_is_refused_by_name(
    config: Path, old: str, new: str, said: str
) -> None:
    change(config, old, new)
    with pytest.raises(ConfigError) as caught:
        read_broker_config(config, "lead-0")
    assert str(caught.value).startswith(str(config))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"nodelist": ["lead-[0-1],burst-0-[0-3]"]},
        {"nodelist": ["lead-[0"]},
        {"R_lite": [{"rank": "0-9", "children": {"core": "x"}}]},
    ],
)
def test_r_that_is_not_valid_is_refused(
    directory: Path, config: Path, changes: dict[str, Any]
) -> None:
    changed: dict[str, Any] = deepcopy(R)
    changed["execution"].update(changes)
    (directory / "R").write_text(json.dumps(changed))
    with pytest.raises(ConfigError) as caught:
        read_resources(config, ())
    assert f"{directory}/R: is not a valid R" in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"nodelist": ["lead-[0-1],burst-1-[0-3],burst-0-[0-3]"]},
        {"R_lite": [{"rank": "1-10", "children": {"core": "0"}}]},
        {
            "R_lite": [{"rank": "0", "children": {"core": "0"}}],
            "nodelist": ["lead-0"],
        },
    ],
)
def test_r_of_other_hosts_is_refused(
    directory: Path, config: Path, changes: dict[str, Any]
) -> None:
    changed: dict[str, Any] = deepcopy(R)
    changed["execution"].update(changes)
    (directory / "R").write_text(json.dumps(changed))
    hosts = read_broker_config(config, "lead-0").hosts
    with pytest.raises(ConfigError, match=r"R: does not match bootstrap\.hosts"):
        read_resources(config, hosts)


@pytest.mark.parametrize("content", ["", "[]", "nonsense", '{"version": 2}'])
def test_what_is_no_r_is_refused(directory: Path, config: Path, content: str) -> None:
    (directory / "R").write_text(content)
    with pytest.raises(ConfigError, match="has to be R of RFC 20"):
        read_resources(config, ())


def test_a_lead_without_r_is_refused(directory: Path, config: Path) -> None:
    (directory / "R").unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_resources(config, ())
    change(config, "path = ", "#")
    with pytest.raises(ConfigError, match=r"resource\.path: is missing"):
        read_resources(config, ())
