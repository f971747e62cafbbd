# SPDX-License-Identifier: MIT
"""Credentials that cannot be used, which no message may tell."""

from __future__ import annotations

import json
import pwd
import traceback
from pathlib import Path
from typing import Any

import pytest
from burst_vm.cloud import VmCloud
from libcloud.common.exceptions import BaseHTTPError

from burst.errors import BurstError, ConfigError, Refused
from tests.plugins.vm.fake_cloud import FakeCloud

USER = "burst@hpc.iam.gserviceaccount.com"
# As `gcloud auth application-default login` writes them.
LOGIN = json.dumps(
    {
        "type": "authorized_user",
        "client_id": "somebody",
        "client_secret": "swordfish",
        "refresh_token": "swordfish",
    }
)


def write(cloud: FakeCloud, key: str) -> None:
    text = f"user_id = '{USER}'\nkey = '{key}'\n"
    cloud.credentials.write_text(text)


def told_of(cloud: VmCloud, kind: type[BurstError]) -> str:
    """Return all that could be told of the error that the cloud's first call raises."""
    with pytest.raises(kind) as caught:
        cloud.machines()
    told = "".join(traceback.format_exception(caught.value))
    assert "swordfish" not in told
    return told


@pytest.mark.parametrize(
    "content",
    [LOGIN, '{"private_key": {"a": "swordfish"}}', '{"private_key": "swordfish'],
    ids=["no private_key", "no text", "half written"],
)
def test_a_file_that_is_no_service_accounts_is_refused_and_not_told(
    tmp_path: Path, content: str
) -> None:
    fake, file = FakeCloud(tmp_path, "gce"), tmp_path / "account.json"
    file.write_text(f"\n{content}")
    write(fake, str(file))
    cloud = VmCloud(fake.settings(driver_options={"project": "hpc"}))
    told = told_of(cloud, ConfigError)
    assert f"key: {file}: has no private_key" in told
    assert "let key name the JSON file of a service account" in told


def test_what_libcloud_says_of_credentials_is_not_told(tmp_path: Path) -> None:
    """Libcloud puts all of a key into its error that it cannot read."""
    fake = FakeCloud(tmp_path, "gce")
    write(fake, LOGIN)
    cloud = VmCloud(fake.settings(driver_options={"project": "hpc"}))
    assert "cannot be made: GoogleAuthError" in told_of(cloud, Refused)


def test_of_an_error_with_a_secret_its_type_is_told(
    tmp_path: Path,
) -> None:
    def make(**given: Any) -> None:
        raise ValueError(f"Invalid secret: {given['secret']}")

    told = told_of(VmCloud(FakeCloud(tmp_path).settings(), make), Refused)
    assert "cannot be made: ValueError" in told


def test_what_the_cloud_says_is_told(tmp_path: Path) -> None:
    def make(**_: Any) -> None:
        raise BaseHTTPError(403, "the account was disabled")

    told = told_of(VmCloud(FakeCloud(tmp_path).settings(), make), Refused)
    assert "the account was disabled" in told


def test_a_user_without_a_home_has_no_file_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    cloud = FakeCloud(tmp_path, "gce")
    write(cloud, "~/account.json")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    told = told_of(cloud.cloud(), ConfigError)
    assert "key: ~/account.json: this user has no home directory" in told
