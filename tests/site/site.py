# SPDX-License-Identifier: MIT
"""A laboratory's Flux on two hosts, before anything of ours is known there.

`flux.service` as it is installed, user `flux`, guests by munge and a setuid IMP, jobs
by systemd, two queues that require properties, a validator that asks the scheduler,
limits, scripts of root before and after each job on each of its hosts, housekeeping,
resources in the configuration, and flux-accounting and Fluxion where they are
installed.

Source: the administrator's guide of Flux, "Configuration".
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import msgspec
import tomli_w

from burst.lead_setup.own_host import own_shape
from tests.flux_instance import flux_bindings
from tests.multiuser.lab import OWNER, imp_path
from tests.site import accounts, fluxion
from tests.site.box import Box
from tests.site.flux_host import CONFIG, ETC, UNIT, prepare
from tests.site.network import DEVICE, connect
from tests.support.waiting import HANG_S, wait_until

HOSTS = ("head", "node1")
SIMPLE = "simple"
SCHEDULERS = (SIMPLE, *fluxion.POLICIES)
CORES = min(2, own_shape().cores)
PORT = 8050

_LIMITS = {"duration": "2h", "job-size": {"max": {"nnodes": 8}}}


class SiteShape(msgspec.Struct, frozen=True, kw_only=True):
    """How a site differs from another."""

    scheduler: str = SIMPLE
    """sched-simple, or the policy of Fluxion's queues."""
    accounting: bool = False
    """flux-accounting decides about priorities; ann and bob have banks."""
    r_in_a_file: bool = False
    """R is in a file, in place of [[resource.config]], and conf.d has several files."""
    head_excluded: bool = False
    """The first host runs no jobs, as of a site whose users log in there."""
    tables: Mapping[str, Any] = {}
    """Of the configuration, in place of the usual ones."""


class Site:
    """The hosts of a site, and what root and users type on the first."""

    def __init__(self, shape: SiteShape) -> None:
        self.shape = shape
        self.for_all_hosts = [str(ETC / "system/conf.d"), str(ETC / "system/R")]
        """What a change of the configuration is, on each host."""
        self._stack = ExitStack()
        self._handle: Any = None
        try:
            with ThreadPoolExecutor() as pool:
                made = list(pool.map(self._make_box, HOSTS))
            self.boxes: Sequence[Box] = made
            self.head = made[0]
            connect(made)
            self._prepare()
            self.start()
            # Queues that are new wait for it; they stay started over restarts.
            self.flux(OWNER, "queue", "start", "--all", "--quiet")
            if shape.accounting:
                accounts.start(self.head)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the hosts."""
        self._stack.close()

    def _make_box(self, name: str) -> Box:
        return self._stack.enter_context(Box(name))

    def _prepare(self) -> None:
        certificate = self._make_certificate()
        key = secrets.token_hex(64)

        def prepare_one(box: Box) -> None:
            prepare(box, key, certificate)
            if self.shape.scheduler == SIMPLE:
                fluxion.remove(box)
            else:
                fluxion.install(box)
            self._configure(box)

        with ThreadPoolExecutor() as pool:
            list(pool.map(prepare_one, self.boxes))
        if self.shape.accounting:
            accounts.create(self.head)

    def _configure(self, box: Box) -> None:
        tables = self._tables()
        if self.shape.r_in_a_file:
            names = ("bootstrap", "queues", "policy")
            for name in names:
                box.write(CONFIG / f"{name}.toml", tomli_w.dumps({name: tables[name]}))
            tables = {name: each for name, each in tables.items() if name not in names}
            tables["resource"] = {"path": str(ETC / "system/R")}
            of_hosts = ("--hosts", ",".join(HOSTS), "--cores", f"0-{CORES - 1}")
            properties = ("--property=batch", f"--property=debug:{len(HOSTS) - 1}")
            r = box.run("root", "flux", "R", "encode", *of_hosts, *properties)
            box.write(ETC / "system/R", r)
        box.write(CONFIG / "system.toml", tomli_w.dumps(tables))

    def _make_certificate(self) -> str:
        return self.head.run(
            "root", "sh", "-c", "flux keygen /run/cert && cat /run/cert && rm /run/cert"
        )

    def _tables(self) -> dict[str, Any]:
        """Return the configuration, as the administrator's guide has it."""
        plugins = [{"load": "perilog.so"}]
        if self.shape.accounting:
            plugins.append({"load": accounts.PLUGIN})
        usual: dict[str, Any] = {
            "access": {"allow-guest-user": True, "allow-root-owner": True},
            "systemd": {"enable": True},
            "exec": {"imp": str(imp_path()), "service": "sdexec"},
            "bootstrap": {
                "curve_cert": str(ETC / "system/curve.cert"),
                "default_port": PORT,
                "default_bind": f"tcp://{DEVICE}:%p",
                "default_connect": "tcp://%h:%p",
                "hosts": [{"host": ",".join(HOSTS)}],
            },
            "tbon": {"tcp_user_timeout": "20s"},
            "resource": {"config": _resources(), **self._excluded()},
            "queues": {
                "batch": {"requires": ["batch"]},
                "debug": {
                    "requires": ["debug"],
                    "policy": {"limits": {"duration": "30m"}},
                },
            },
            "policy": {
                "jobspec": {
                    "defaults": {"system": {"queue": "batch", "duration": "10m"}}
                },
                "limits": _LIMITS,
            },
            "ingest": {"validator": {"plugins": ["jobspec", "feasibility"]}},
            "job-manager": {
                "plugins": plugins,
                "prolog": {"per-rank": True},
                "epilog": {"per-rank": True},
                "housekeeping": {"release-after": "30s"},
            },
        }
        if self.shape.scheduler != SIMPLE:
            usual |= fluxion.tables(self.shape.scheduler)
        return {**usual, **self.shape.tables}

    def _excluded(self) -> dict[str, str]:
        return {"exclude": HOSTS[0]} if self.shape.head_excluded else {}

    @property
    def own_hosts(self) -> Sequence[str]:
        """Those that run jobs."""
        return HOSTS[1:] if self.shape.head_excluded else HOSTS

    def start(self) -> None:
        """Start the instance on all hosts, and return once they are online."""
        for box in self.boxes:
            done = box.try_run("root", "systemctl", "start", UNIT)
            assert done.returncode == 0, self.log()
        self.wait_until_up()

    def distribute(self) -> None:
        """Give all hosts these files of the first, as a site's own means do."""
        names = " ".join(shlex.quote(each.lstrip("/")) for each in self.for_all_hosts)
        for box in self.boxes[1:]:
            made = self.head.shared / "etc.tar"
            there = box.shared / "etc.tar"
            # Those that are not there are taken away there, too.
            pack = f"cd /; tar -cf {made} $(ls -d {names} 2>/dev/null)"
            self.root("sh", "-c", pack)
            shutil.move(made, there)
            box.run("root", "rm", "-rf", *self.for_all_hosts)
            box.run("root", "tar", "-C", "/", "-xpf", str(there))
            there.unlink()

    def restart(self) -> None:
        """Restart the instance on all hosts, with the files of the first."""
        self.distribute()
        for box in reversed(self.boxes):
            box.run("root", "systemctl", "stop", UNIT)
        self._handle = None
        self.start()

    def wait_until_up(self) -> None:
        """Return once the instance's own hosts are online and a guest may submit."""
        wait_until(self._is_up, self.log, pause=0.2)

    def _is_up(self) -> bool:
        done = self.try_flux("ann", "resource", "list", "-s", "up", "-no", "{nodelist}")
        return done.stdout.strip() == ",".join(self.own_hosts)

    def log(self) -> str:
        """Return what the brokers and the daemon printed."""
        units = [(box, unit) for box in self.boxes for unit in (UNIT, "burst")]
        texts = (f"{box.name} {unit}:\n{box.journal(unit)}" for box, unit in units)
        return "\n".join(texts)

    def root(self, *command: str) -> str:
        """Run a command as root on the first host; return what it printed."""
        return self.head.run("root", *command)

    def try_flux(self, user: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a flux command as a user on the first host; it may fail."""
        return self.head.try_run(user, "flux", *words)

    def flux(self, user: str, *words: str) -> str:
        """Run a flux command as a user and return what it printed."""
        return self.head.run(user, "flux", *words).strip()

    def rpc(self, topic: str, payload: Mapping[str, Any]) -> Any:
        """Ask a service on the first host as root, whom the instance obeys.

        From here, as a program would take a hundred times as long. Raises OSError.
        """
        try:
            asked = self._connected().rpc(topic, dict(payload))
            return asked.wait_for(HANG_S).get()
        except OSError:
            # The broker may have been started anew.
            self._handle = None
            raise

    def _connected(self) -> Any:
        if self._handle is None:
            socket = f"/proc/{self.head.pid}/root/run/flux/local"
            self._handle = flux_bindings().Flux(f"local://{socket}")
        return self._handle

    def bursts(self) -> list[Any]:
        """Return the rows of all bursts."""
        return list(self.rpc("burst.status", {})["bursts"])

    def active_jobs(self) -> list[str]:
        """Return the names of jobs that have not ended, of all users."""
        lists = flux_bindings().job.JobList
        found = lists(self._connected(), user="all", filters=["active"]).jobs()
        return [job.name for job in found]


def _resources() -> list[dict[str, Any]]:
    """Return [[resource.config]]: all are `batch`, and the last one is `debug` too."""
    cores = f"0-{CORES - 1}"
    return [
        {"hosts": ",".join(HOSTS), "cores": cores, "properties": ["batch"]},
        {"hosts": HOSTS[-1], "properties": ["debug"]},
    ]
