# SPDX-License-Identifier: MIT
"""The places where `benchmarks.path` starts followers, by a provider and by hand.

Each place has the table of a provider, and a hand. The hand writes all files before,
and then starts the followers of one burst in the same way as the provider.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import burst_flux.jobs
import burst_slurm.settings
import msgspec
from burst_command.protocol import BeginRequest
from burst_local import launch
from burst_local.burst_dirs import ProviderDirectory
from burst_local.provider import LocalProvider

from burst.errors import NotFound
from burst.kits import followers
from burst.kits.broker import follower_config
from burst.kits.job_tasks import JobTasks
from burst.model.lead import LeadIdentity
from burst.testing import example_spec
from tests.flux_instance import FLUX
from tests.plugins.command.played import Site
from tests.plugins.flux.other_flux import OtherInstance, other_instance
from tests.slurm.slurm_lab import SlurmLab
from tests.support.fluxlead import short_directory
from tests.support.waiting import wait_until

NODES = 4
_SOLD = {"cores": 4, "gpus": 1, "max_nodes": NODES}
_LIMIT_S = 600
_JOB = "hand"

Start = Callable[[], object]


class Hand(NamedTuple):
    """A user's script that starts followers when the user submits a job."""

    prepare: Callable[[], Sequence[Start]]
    """Writes all files, and returns functions that start the followers."""
    is_gone: Callable[[], bool]
    """Ends the followers and removes their files; tells whether that is done."""

    def end(self) -> None:
        """End the followers, and wait until nothing is left."""
        wait_until(self.is_gone, "the followers to end")


class Place(NamedTuple):
    """A place where followers can be started."""

    table: Mapping[str, Any]
    """The table of the provider in burst.toml."""
    hand: Callable[[LeadIdentity], Hand]
    """Returns the hand for a lead."""


@contextmanager
def local() -> Iterator[Place]:
    """Yield this host as a place."""
    with tempfile.TemporaryDirectory() as path:
        table = {"type": "local", "dir": f"{path}/p", **_SOLD}
        yield Place(table, lambda identity: _local_hand(Path(path, "h"), identity))


def _local_hand(base: Path, identity: LeadIdentity) -> Hand:
    settings = LocalProvider.Settings(dir=str(base), cores=4)
    provider = LocalProvider(_JOB, settings, identity.owner)
    home = ProviderDirectory(base, identity.owner, _JOB)
    spec = example_spec(identity, 0, "local", NODES)
    place = home.burst(spec.burst_id)

    def prepare() -> list[Start]:
        home.open()
        place.make(spec, follower_config(spec.lead, spec.hosts, spec.ranks))
        return [starter(host) for host in spec.hosts]

    def starter(host: str) -> Start:
        follower = place.follower(host)
        command = launch.follower_command(FLUX or "flux")
        argv = command(spec, host, place.config, follower.path)
        tags = {
            "BURST_OWNER": spec.owner,
            "BURST_PROVIDER": _JOB,
            "BURST_ID": spec.burst_id,
            "BURST_HOST": host,
        }
        return lambda: launch.start(argv, follower, tags, {})

    def is_gone() -> bool:
        try:
            provider.reap(spec.burst_id)
        except NotFound:
            return True
        return False

    return Hand(prepare, is_gone)


@contextmanager
def slurm() -> Iterator[Place]:
    """Yield a Slurm of its own, with four idle nodes that are this host."""
    before = dict(os.environ)
    with short_directory() as path, SlurmLab(path) as lab:
        os.environ.update(lab.environment)
        table = {"type": "slurm", "dir": str(lab.dir), "time": "10m", **_SOLD}
        try:
            yield Place(table, lambda identity: _slurm_hand(lab, identity))
        finally:
            os.environ.clear()
            os.environ.update(before)


def _slurm_hand(lab: SlurmLab, identity: LeadIdentity) -> Hand:
    spec = example_spec(identity, 0, "nodes", NODES)
    files = JobTasks(lab.place / _JOB)
    script = burst_slurm.settings.batch_script(files.task)
    settings = msgspec.structs.replace(lab.settings, gpus=1)
    options = burst_slurm.settings.job_options(
        settings, _JOB, files.log, NODES, _LIMIT_S
    )

    def prepare() -> list[Start]:
        files.write(spec, FLUX, "SLURM_PROCID")
        return [lambda: _run(["sbatch", *options], script)]

    def is_gone() -> bool:
        lab.slurm("scancel", f"--name={_JOB}")
        return not lab.jobs() and _removed(files)

    return Hand(prepare, is_gone)


@contextmanager
def flux() -> Iterator[Place]:
    """Yield another Flux instance, with four idle nodes that are this host."""
    with other_instance() as other:
        yield Place(other.table, lambda identity: _flux_hand(other, identity))


def _flux_hand(other: OtherInstance, identity: LeadIdentity) -> Hand:
    spec = example_spec(identity, 0, "nodes", NODES)
    files = JobTasks(other.directory / _JOB)
    settings = msgspec.structs.replace(other.settings, gpus=1)
    options = burst_flux.jobs.job_options(settings, _JOB, NODES, _LIMIT_S)
    command = ["submit", *options, f"--output={files.log}", "sh", str(files.task)]

    def prepare() -> list[Start]:
        files.write(spec, FLUX, "FLUX_TASK_RANK")
        return [lambda: other.flux(*command)]

    def is_gone() -> bool:
        if other.jobs():
            other.flux("cancel", "--all", "--states=PENDING,RUN")
        return not other.jobs() and _removed(files)

    return Hand(prepare, is_gone)


@contextmanager
def command() -> Iterator[Place]:
    """Yield a site with a program in sh, whose nodes are this host."""
    with short_directory() as path:
        site = Site(path)
        table = {
            "type": "command",
            "program": list(site.settings.program),
            "dir": site.settings.dir,
            **_SOLD,
        }
        try:
            yield Place(table, lambda identity: _command_hand(site, identity))
        finally:
            site.close()


def _command_hand(site: Site, identity: LeadIdentity) -> Hand:
    spec = example_spec(identity, 0, "nodes", NODES)
    files = site.path / _JOB
    settings = site.settings
    asked = BeginRequest(
        name=f"{_JOB}.{_JOB}.{spec.burst_id}",
        hosts=spec.hosts,
        cores=settings.cores,
        gpus=settings.gpus,
        start=str(files / "start"),
        log=str(files / "log"),
        seconds=_LIMIT_S,
        users=spec.userids,
        arguments=settings.arguments,
    )
    text = msgspec.json.encode(asked).decode() + "\n"

    def prepare() -> list[Start]:
        followers.Files(flux=FLUX).write(files, spec)
        return [lambda: _run([*settings.program, "begin"], text)]

    def is_gone() -> bool:
        _run([*settings.program, "end"], text)
        if site.nodes(spec.burst_id):
            return False
        followers.remove(files)
        return True

    return Hand(prepare, is_gone)


def _removed(files: JobTasks) -> bool:
    files.remove()
    return True


def _run(command: Sequence[str], given: str) -> None:
    subprocess.run(command, input=given, text=True, check=True, capture_output=True)
