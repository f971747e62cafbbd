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


@pytest.mark.parametrize("limit", ["0.5s", "2d"])
def test_agents_may_be_silent_for_a_while(limit: str) -> None:
    with pytest.raises(ConfigError, match=r"ensemble\.agent: .* is out of range"):
        parse({"ensemble": {"agent": limit}}, "burst.toml")
    with pytest.raises(ConfigError, match=r"write it as agent under \[ensemble\]"):
        parse({"deadlines": {"agent": limit}}, "burst.toml")
