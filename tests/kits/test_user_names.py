# SPDX-License-Identifier: MIT
"""Users who have a name on this host, and users who have none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from burst.errors import ConfigError
from burst.kits.user_names import expand_home, own_home, user_name


@pytest.mark.parametrize(
    ("uid", "name"), [(0, "root"), (2**32 - 7, "4294967289"), (2**70, str(2**70))]
)
def test_a_user_without_a_name_is_told_by_number(uid: int, name: str) -> None:
    assert user_name(uid) == name


def test_a_home_that_is_not_known_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without HOME, as under systemd, that of a user without a name is not known."""
    monkeypatch.setenv("HOME", "/home/ann")
    assert expand_home("~/a") == Path("/home/ann/a")
    assert expand_home("~no-such-user/a") == Path("~no-such-user/a")


def test_where_a_home_is_needed_its_lack_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert own_home({"HOME": "/home/ann"}) == Path("/home/ann")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(ConfigError, match="no home directory here; set HOME"):
        own_home({})
