# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest
from burst_kind.programs import Programs

from burst.errors import ProviderError, Refused, Transient
from tests.plugins.kind.harness import KindHarness


def test_what_is_not_installed_is_refused_with_what_to_do(kind: KindHarness) -> None:
    with pytest.raises(Refused, match=r"no program 'docker'; install docker"):
        Programs({"PATH": "/nowhere"}).nodes("far")
    (kind.path / "bin/kind").unlink()
    with pytest.raises(Refused, match=r"no program 'kind'; install kind \(https:"):
        Programs({"PATH": f"{kind.path}/bin"}).kind("version")


@pytest.mark.parametrize(
    ("said", "error", "told"),
    [
        (
            "permission denied while trying to connect to the Docker daemon socket",
            Refused,
            "add the user to the group docker",
        ),
        (
            "failed to connect to the docker API at unix:///x.sock",
            Transient,
            "start docker, or set DOCKER_HOST",
        ),
        ("Error response\n from daemon: no", Transient, "Error response from daemon"),
        ("", Transient, "`docker ps` failed: exit status 1"),
    ],
)
def test_docker_that_does_not_do_it(
    kind: KindHarness, said: str, error: type[ProviderError], told: str
) -> None:
    # An exit message of "" would be status 0.
    kind.set("docker-error", said or " ")
    with pytest.raises(error, match=told):
        Programs(kind.environment).nodes("far")


def test_in_another_network_there_may_be_none(kind: KindHarness) -> None:
    kind.make_cluster("lead")
    other = {**kind.environment, "KIND_EXPERIMENTAL_DOCKER_NETWORK": "other"}
    programs = Programs(other)
    with pytest.raises(
        Refused, match="control-plane has no IPv4 address in the docker"
    ):
        programs.address("lead-control-plane")
    with pytest.raises(
        Refused, match="host has no IPv4 address in the docker network other"
    ):
        programs.address("host")
