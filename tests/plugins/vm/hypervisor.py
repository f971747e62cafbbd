# SPDX-License-Identifier: MIT
"""Boots a cloud's VMs: what their user data says runs here, as processes.

It does of cloud-init and systemd what the user data of burst_vm needs: write_files, and
the commands of the two units. Each VM has a directory in place of the paths that the
user data names, and a `systemctl` that knows `poweroff`.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from burst_vm.machines import BURST
from burst_vm.user_data import HOME

from tests.plugins.vm.imitation import Imitation
from tests.plugins.vm.moto_cloud import tags_of
from tests.support.fluxlead import short_directory
from tests.support.own_name import OWN_NAME
from tests.support.ports import free_port

SYSTEMCTL = """#!/bin/sh
case "$*" in
  is-system-running) echo running ;;
  *poweroff*) touch {off} ;;
esac
"""


class Vm:
    """One VM that was booted."""

    def __init__(self, place: Path, user_data: str) -> None:
        self.place = place
        self.user_data = user_data
        (place / "bin").mkdir(parents=True)
        self.off = place / "off"
        systemctl = place / "bin" / "systemctl"
        systemctl.write_text(SYSTEMCTL.format(off=self.off))
        systemctl.chmod(0o755)
        self._running: list[subprocess.Popen[bytes]] = []
        self._ended = False
        self._lock = threading.Lock()
        """Nothing is started once it has ended."""

    def boot(self) -> None:
        """Write the files, and start the units."""
        for path, content in written(self.user_data).items():
            target = self.place / path.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content.replace(HOME, f"{self.place}{HOME}"))
        for name in ("burst-end", "burst-follower"):
            unit = self.place / "etc/systemd/system" / f"{name}.service"
            threading.Thread(target=self._run, args=(unit,), daemon=True).start()

    def _run(self, unit: Path) -> None:
        """Run a unit's commands in order, the last whatever the others did."""
        found = commands(unit.read_text())
        ended = 0
        for key in ("ExecStartPre", "ExecStart"):
            if key in found and ended == 0 and not self._ended:
                ended = self._call(found[key])
        if "ExecStopPost" in found and not self._ended:
            self._call(found["ExecStopPost"])

    def _call(self, words: list[str]) -> int:
        path = f"{self.place}/bin:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.place)}
        if words[0].endswith("python3"):
            words = [sys.executable, *words[1:]]
        with (self.place / "log").open("ab") as log, self._lock:
            if self._ended:
                return 1
            process = subprocess.Popen(
                words, env=environment, stdout=log, stderr=log, start_new_session=True
            )
            self._running.append(process)
        try:
            # Not `wait`: `end` kills its group, whose id may be another's after that.
            ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:  # `end` was first
            return 1
        return ended.si_status if ended else 1

    def signal(self, number: signal.Signals) -> None:
        """Signal the main processes of the units that run."""
        for process in self._running:
            os.kill(process.pid, number)

    def end(self) -> None:
        """Kill all that runs in it, as a VM that is destroyed."""
        with self._lock:
            self._ended = True
        for process in self._running:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def command_lines(self) -> str:
        """Return what others on the host see of its processes."""
        lines = []
        for process in self._running:
            with contextlib.suppress(OSError):
                lines.append(Path(f"/proc/{process.pid}/cmdline").read_text())
        return "\n".join(lines)


class Hypervisor:
    """Boots each VM of a cloud, and ends it as the cloud says."""

    def __init__(self, cloud: Imitation) -> None:
        self.cloud = cloud
        self.paused = False
        self.vms: dict[str, Vm] = {}
        self._bursts: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            self._look()
        self._look(live=False)

    def _look(self, *, live: bool = True) -> None:
        there = {vm.id: vm for vm in self.cloud.vms()} if live else {}
        for name in self.vms.keys() - there.keys():
            self.vms[name].end()
        for name, vm in there.items():
            if name not in self.vms and not self.paused:
                place = self.cloud.path / "vms" / name
                self.vms[name] = Vm(place, text_of(vm))
                self.vms[name].boot()
                self._bursts.add(tags_of(vm)[BURST])
            elif name in self.vms and self.vms[name].off.exists():
                self.cloud.powered_off(vm)

    def table(self, **changes: Any) -> dict[str, Any]:
        """Return `[providers.NAME]` of VMs like the nodes of a lead under test."""
        size = {"size": "c7i.large", "cores": 4, "gpus": 1, "max_nodes": 2}
        offer = {**size, "price": 0.1}
        found = self.cloud.table(
            offers={"nodes": offer}, user=OWN_NAME, port=free_port(), **changes
        )
        return {"type": "vm", **found}

    def of(self, burst: str, host: str) -> tuple[Any, Vm]:
        """Return moto's VM of a follower, and the one that runs here."""
        [found] = self.cloud.vms(burst=burst, host=host)
        return found, self.vms[found.id]

    def close(self) -> None:
        """End all VMs, and delete what was on their disks."""
        self._stop.set()
        self._thread.join()
        for burst in self._bursts:
            for rundir in Path("/tmp").glob(f"{burst}-*"):
                shutil.rmtree(rundir, ignore_errors=True)


@contextlib.contextmanager
def booting(make: Callable[[Path], Imitation]) -> Iterator[Hypervisor]:
    """Yield an imitation of a cloud whose VMs run on this host."""
    with short_directory() as path:
        cloud = make(path)
        hosts = Hypervisor(cloud)
        try:
            yield hosts
        finally:
            hosts.close()
            cloud.close()


def written(user_data: str) -> dict[Path, str]:
    """Return the files that the user data has cloud-init write, by path."""
    return {
        Path(entry["path"]): gzip.decompress(
            base64.b64decode(entry["content"])
        ).decode()
        for entry in yaml.safe_load(user_data)["write_files"]
    }


def commands(unit: str) -> dict[str, list[str]]:
    """Return the commands of a unit by key, as systemd reads their lines."""
    found = {}
    for line in unit.replace("\\\n", "").splitlines():
        key, equals, words = line.partition("=")
        if equals and key.startswith("Exec"):
            plain = words.removeprefix("+").replace("%%", "%").replace("$$", "$")
            found[key] = shlex.split(plain)
    return found


def text_of(vm: Any) -> str:
    """Return the user data of one of moto's VMs, kept as base64, or text that was."""
    kept = vm.user_data
    data = kept if isinstance(kept, bytes) else str(kept).encode()
    with contextlib.suppress(ValueError):
        data = base64.b64decode(data, validate=True)
    return data.decode()
