# SPDX-License-Identifier: MIT
"""A whole provider, whose followers are processes of the lead's host.

Each follower has a lock file, which the kernel keeps locked while any process of the
follower lives. So the provider needs no memory of its own, and finds after a crash what
it had started. docs/provider.md has the rules that it keeps.
"""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from burst.kits import followers
from burst.kits.atomic_file import write_atomically
from burst.kits.job_tasks import check_spec
from burst.kits.join_errors import explain_log, read_log
from burst.kits.private_dir import (
    PrivateDirectory,
    disk_errors,
    is_safe_name,
    load_json,
)
from burst.provider import (
    BurstId,
    BurstSpec,
    BurstStatus,
    FollowerStatus,
    NotFound,
    Offer,
    Phase,
    Provider,
    Shape,
    Transient,
)

KILL_AFTER_S = 60.0


class HereSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of `[providers.NAME]`."""

    dir: str
    """Where bursts have their files."""
    cores: int = 1
    max_nodes: int = 4
    flux: str = "flux"


class Follower:
    """One follower, whose files have the name `HOST`.

    The lock is taken before the process exists and is inherited by it: at no moment can
    a follower be started twice or be overlooked. The script that the kit
    `burst.kits.followers` has written does the rest: a rundir, the environment, an end
    in order at SIGTERM and at the end of the lease.
    """

    def __init__(self, place: Path, host: str) -> None:
        self.place, self.host = place, host
        self.lock, self.pid, self.log = (
            place / f"{host}.{kind}" for kind in ("lock", "pid", "log")
        )

    def start(self) -> None:
        """Start it. Raises Transient while another call starts it."""
        with self.lock.open("w") as lock, self.log.open("ab") as log:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Transient(f"{self.host} is being started") from error
            lines = 'echo $$ > "$1~" && mv "$1~" "$1" && exec sh "$2" "$3"'
            files = [str(self.pid), str(self.place / "start"), self.host]
            subprocess.run(
                ["setsid", "--fork", "sh", "-c", lines, "sh", *files],  # noqa: S607
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[lock.fileno()],
                check=True,
            )

    def runs(self) -> bool:
        """Tell whether any process of it lives."""
        try:
            with self.lock.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def stop(self, sent: signal.Signals) -> None:
        """Send a signal to its script; SIGKILL to all that the script started."""
        pid = self.pid.read_text().strip() if self.pid.exists() else ""
        if pid:  # of the script, and of its process group
            (os.killpg if sent is signal.SIGKILL else os.kill)(int(pid), sent)

    def status(self) -> FollowerStatus:
        """Return what is seen of it."""
        if not self.pid.exists():
            return FollowerStatus(self.host, Phase.PENDING)
        if self.runs():
            return FollowerStatus(self.host, Phase.RUNNING)
        what = "its processes have ended"
        why = explain_log(read_log(self.log)) or what
        return FollowerStatus(self.host, Phase.FAILED, why, lost=what)


class HereProvider(Provider):
    """Keeps a directory for each burst, in one named for `owner` and `name`: the tags.

    `provision` writes the files before it starts anything, and starts what was not
    started. `reap` is called again and again: it sends signals while anything runs,
    then removes the files, and only then says that nothing is left.
    """

    Settings = HereSettings

    def __init__(self, name: str, settings: HereSettings, owner: str) -> None:
        self._settings = settings
        self._home = PrivateDirectory(Path(settings.dir), owner, name)

    def offers(self) -> Sequence[Offer]:
        """Return the one kind of nodes."""
        known = self._settings
        return [Offer(name="n", shape=Shape(known.cores), max_nodes=known.max_nodes)]

    def place(self) -> str:
        """Return the directory of bursts, which no reload may change (optional)."""
        return self._settings.dir

    def provision(self, spec: BurstSpec) -> None:
        """Start the followers that were not started."""
        check_spec(spec, self.offers()[0])
        self._home.open()
        place = self._home.path / spec.burst_id
        followers.write(place, spec, flux=self._settings.flux)
        with disk_errors(place, writing=True):
            write_atomically(place / "hosts", msgspec.json.encode(spec.hosts))
            for host in spec.hosts:
                follower = Follower(place, host)
                if not follower.pid.exists():
                    follower.start()

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts of this owner and provider."""
        self._home.check()
        with disk_errors(self._home.path):
            return [self._status(BurstId(name)) for name in self._home.names()]

    def reap(self, burst_id: BurstId) -> None:
        """End what is left of a burst. Raises NotFound once nothing is."""
        self._home.check()
        place = self._home.path / burst_id
        with disk_errors(self._home.path):
            if is_safe_name(burst_id) and place.is_dir():
                ending = place / "ending"
                if not ending.exists():
                    ending.touch()
                late = time.time() - ending.stat().st_mtime > KILL_AFTER_S
                found = [Follower(place, each.stem) for each in place.glob("*.lock")]
                live = [follower for follower in found if follower.runs()]
                for follower in live:
                    follower.stop(signal.SIGKILL if late else signal.SIGTERM)
                if live:
                    return
                followers.remove(place)
            self._home.close()
        raise NotFound(f"no process and no file of {burst_id} is left")

    def _status(self, burst_id: BurstId) -> BurstStatus:
        place = self._home.path / burst_id
        hosts = load_json(place / "hosts", tuple[str, ...]) or ()
        found = tuple(Follower(place, host).status() for host in hosts)
        phases = [follower.phase for follower in found]
        order = (Phase.FAILED, Phase.PENDING, Phase.RUNNING)
        phase = next((each for each in order if each in phases), Phase.PENDING)
        if (place / "ending").exists():
            phase = Phase.ENDING
        why = next((f"{each.host}: {each.why}" for each in found if each.why), "")
        return BurstStatus(burst_id=burst_id, phase=phase, followers=found, why=why)
