# SPDX-License-Identifier: MIT
"""Keys of providers that are gone: the error says what to write instead."""

from __future__ import annotations

import pytest
from burst_command.settings import CommandSettings
from burst_flux.settings import FluxSettings
from burst_kind.settings import KindSettings
from burst_slurm.settings import SlurmSettings

from burst.config import convert
from burst.errors import ConfigError


@pytest.mark.parametrize(
    ("kind", "key", "advice"),
    [
        (CommandSettings, "limit", "remove it: each call of the program may take 1m"),
        (KindSettings, "dir", "remove it once no burst lives"),
        (
            KindSettings,
            "internal",
            "remove it, and run the daemon on the host",
        ),
        (KindSettings, "image_pull", r"write it .* imagePullPolicy of the container"),
        (
            KindSettings,
            "service_port",
            "remove it: have the service listen at port 5000",
        ),
        (FluxSettings, "bank", r'write it in options: "--bank=\.\.\."'),
        (SlurmSettings, "qos", r'write it in options: "--qos=\.\.\."'),
    ],
)
def test_the_error_of_a_key_that_is_gone_says_what_to_write(
    kind: type, key: str, advice: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^providers\.x: {key}: is gone; {advice}"):
        convert(kind, {key: "x"}, "providers.x")
