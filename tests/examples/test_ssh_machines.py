# SPDX-License-Identifier: MIT
"""examples/command/burst-ssh on virtual hosts, by a real SSH server on each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from burst_command.provider import CommandProvider
from burst_command.settings import CommandSettings

from burst.errors import NotFound, ProviderError
from burst.lead import Lead
from burst.provider import BurstSpec, Phase
from burst.testing import example_spec
from tests.embedded_instance import EmbeddedInstance, short_directory, write_files
from tests.examples.machines import LEAD, MISSING, Machines, machines
from tests.support.ports import free_port
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(bool(MISSING), reason=f"there is no {', '.join(MISSING)}"),
]
PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "command" / "burst-ssh"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with machines(tmp_path_factory.mktemp("machines"), 3) as made:
        yield made


@pytest.fixture
def lead() -> Iterator[Lead]:
    """A lead that machines reach over the bridge."""
    with short_directory() as directory:
        config = write_files(directory, free_port())
        local = "tcp://127.0.0.1:%p"
        text = config.read_text().replace(f'bind = "{local}"', 'bind = "tcp://*:%p"')
        config.write_text(text.replace(local, f"tcp://{LEAD}:%p"))
        instance = EmbeddedInstance(directory)
        try:
            instance.start()
            with closing(instance.lead()) as lead:
                lead.listen(lambda: None)
                yield lead
        finally:
            instance.end()


@pytest.fixture
def provider(
    three: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CommandProvider:
    monkeypatch.setenv("PATH", f"{three.place}/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    settings = CommandSettings(
        program=(sys.executable, str(PROGRAM)),
        dir=str(tmp_path / "shared"),
        cores=4,
        max_nodes=3,
        arguments={"machines": three.names, "taken": str(tmp_path / "taken")},
    )
    return CommandProvider("ssh", settings, "owner")


def spec_of(lead: Lead, nodes: int) -> BurstSpec:
    spec = example_spec(lead.identity(), 0, "nodes", nodes)
    no_gpus = msgspec.structs.replace(spec.shape, gpus=0)
    # The program names the owner of its provider.
    return msgspec.structs.replace(spec, owner="owner", shape=no_gpus)


def reap(provider: CommandProvider, spec: BurstSpec) -> None:
    """Delete it until nothing is left."""

    def is_gone() -> bool:
        try:
            provider.reap(spec.burst_id)
        except NotFound:
            return True
        except ProviderError:
            return False
        return False

    wait_until(is_gone, "the end of the burst", pause=0.2)


def test_a_machine_that_is_cut_off_is_lost_and_taken_until_it_is_back(
    provider: CommandProvider, lead: Lead, three: Machines
) -> None:
    spec = spec_of(lead, 1)
    provider.provision(spec)
    wait_until(
        lambda: provider.observe()[0].phase is Phase.RUNNING, "the follower to run"
    )
    three.cut("machine-0", off=True)
    try:
        [status] = provider.observe()
        assert (status.phase, status.followers[0].lost) == (
            Phase.FAILED,
            "it does not answer",
        )
        provider.reap(spec.burst_id)
        assert [status.burst_id for status in provider.observe()] == [spec.burst_id]
    finally:
        three.cut("machine-0", off=False)
    reap(provider, spec)
