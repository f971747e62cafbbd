# SPDX-License-Identifier: MIT
"""Users who have a name on this host, and users who have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from burst.kits.user_names import expand_home, user_name


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
