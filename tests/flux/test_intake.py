# SPDX-License-Identifier: MIT
"""Which scheduler is loaded, and what that means for `[intake] mode = "scheduler"`."""

from __future__ import annotations

import pytest

from burst.errors import BurstError, ConfigError, Unreadable
from burst.flux.intake import SCHEDULER, check_scheduler
from burst.flux.rpc import RpcClient
from tests.flux.fake_handle import FakeHandle


def client(*modules: str) -> RpcClient:
    loaded = [{"name": name, "services": [name, "sched"]} for name in modules]
    others = [{"name": "kvs", "services": ["kvs"]}]
    services = {"module.list": lambda _: {"mods": [*others, *loaded]}}
    return RpcClient(FakeHandle(services).as_handle())


def test_ours_is_taken() -> None:
    check_scheduler(client(SCHEDULER))


@pytest.mark.parametrize(
    ("modules", "error", "advice"),
    [
        (("sched-simple",), ConfigError, "flux module remove sched-simple"),
        # The lead's rc1 runs, so that the daemon has to wait.
        ((), Unreadable, "flux module load sched-burst"),
    ],
)
def test_another_is_refused_and_none_is_waited_for(
    modules: tuple[str, ...], error: type[BurstError], advice: str
) -> None:
    with pytest.raises(error, match=advice):
        check_scheduler(client(*modules))
