# SPDX-License-Identifier: MIT
"""`[ensemble]`: ensembles that the daemon starts by itself."""

from __future__ import annotations

import pytest
from burst_ensemble.config.settings import ensemble_settings

from burst.config import parse
from burst.errors import ConfigError


def test_by_default_the_daemon_starts_none() -> None:
    assert ensemble_settings(parse({}, "x")).files == ()


@pytest.mark.parametrize("path", ["sweep.toml", "", "./a.toml"])
def test_a_path_is_absolute(path: str) -> None:
    with pytest.raises(ConfigError, match="not an absolute path") as caught:
        parse({"ensemble": {"files": [path]}}, "burst.toml")
    assert "burst.toml: ensemble.files" in str(caught.value)


def test_how_long_agents_may_be_silent_is_no_setting() -> None:
    with pytest.raises(ConfigError, match="agent: is gone; remove it"):
        parse({"ensemble": {"agent": "1m"}}, "burst.toml")
