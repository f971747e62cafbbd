# SPDX-License-Identifier: MIT
"""The broker's socket, shared with other containers of the pod."""

from pathlib import Path
from typing import Any

import pytest

from burst.errors import ConfigError
from burst.kits.pods.template import isolated
from burst.kits.pods.template.job import start_script
from burst.provider import Program
from tests.kits.pods import (
    SETTINGS,
    by_kind,
    make_spec,
    pod_spec,
    read_settings,
    replace,
)

MONITOR = {
    "name": "monitor",
    "volumeMounts": [{"name": "socket", "mountPath": "/flux"}],
}
SHARED = replace(SETTINGS, pod={"spec": {"initContainers": [MONITOR]}})
VOLUME = {"name": "socket", "emptyDir": {"medium": "Memory", "sizeLimit": "32Gi"}}
SERVICE = """\
[[pod.spec.containers]]
name = "service"
volumeMounts = [{ name = "NAME", mountPath = "/flux", readOnly = true }]
"""


@pytest.mark.parametrize("program", [None, Program(kind="interactive")])
def test_its_run_directory_is_a_volume_without_the_certificate(
    tmp_path: Path, program: Program | None
) -> None:
    spec = replace(make_spec(tmp_path), program=program)
    pod = pod_spec(spec, SHARED)
    assert VOLUME in pod["volumes"]
    mount = {"name": "socket", "mountPath": "/burst/socket"}
    assert mount in pod["containers"][0]["volumeMounts"]
    start = by_kind(spec, SHARED)["ConfigMap"]["data"]["start"]
    assert "-Srundir=/burst/socket/broker" in start
    assert "-Slocal-uri=local:///burst/socket/broker/local" in start
    assert "/burst/run/broker" not in start
    lines = [line for line in start.splitlines() if "curve.cert" in line]
    assert lines
    assert not any("/burst/socket" in line for line in lines)


def test_where_no_container_mounts_it_nothing_is_shared(tmp_path: Path) -> None:
    spec = make_spec(tmp_path)
    assert VOLUME not in pod_spec(spec, SETTINGS)["volumes"]
    assert "-Srundir=/burst/run/broker" in start_script(spec, SETTINGS)
    # Where it is shared, a person is told where it is.
    told = isolated.access("jobs", "p0", SHARED)
    assert told.endswith("flux proxy local:///burst/socket/broker/local")


def test_others_mount_it_and_it_alone(tmp_path: Path) -> None:
    found: Any = pod_spec(
        make_spec(tmp_path), read_settings(SERVICE.replace("NAME", "socket"))
    )
    assert [c["name"] for c in found["containers"]] == ["broker", "service"]
    for name in ("run", "secret", "config", "munge"):
        with pytest.raises(ConfigError, match="is only for the broker"):
            read_settings(SERVICE.replace("NAME", name))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("share_socket = true", "share_socket: is gone"),
        ('[[pod.spec.volumes]]\nname = "socket"', "has the broker's socket"),
    ],
)
def test_what_cannot_be_is_refused(more: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read_settings(more)


def test_what_an_offers_pod_mounts_is_where_all_look_for_it(tmp_path: Path) -> None:
    tables = {
        name: replace(table, pod=SHARED.pod) for name, table in SETTINGS.offers.items()
    }
    start = start_script(make_spec(tmp_path), replace(SETTINGS, offers=tables))
    assert "-Srundir=/burst/socket/broker" in start
