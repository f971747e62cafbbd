# SPDX-License-Identifier: MIT
"""Real Flux instances that tests have one after another, each as it was at its start.

To start a lead costs a second of processor, to empty one some milliseconds. A test that
leaves one which cannot be emptied, or that ends it, costs the next test a new one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from burst.model.ranks import parse_idset
from tests.contract.instance import rank_of
from tests.flux_instance import FluxInstance, flux_instance
from tests.support.marked import unmarked
from tests.support.waiting import wait_until

# Idle leads take memory: those that were used last are kept.
_KEPT = 4
_ANYBODY = 0xFFFFFFFF - (1 << 32)
_ANY_STATE = 0x7F
_KVS_DIR = 1
# Why queues are stopped until a scheduler that was just loaded is ready.
_OFFLINE = "Scheduler is offline"


class Lasting(Protocol):
    """An instance that can be emptied; see `tests.flux_instance`."""

    directory: Path
    is_reusable: bool

    def pids(self) -> dict[str, int]:
        """Return the processes of brokers that live, by host."""

    def play_owner(self) -> None:
        """Let `rpc` be its owner's."""

    def rpc(self, topic: str, payload: Mapping[str, Any]) -> Any:
        """Ask a service, as the owner."""

    def kill_follower(self, host: str) -> None:
        """Kill a follower."""


class FluxPool:
    """Lends instances, and keeps them for the next test that wants the same."""

    def __init__(self) -> None:
        self._kept: list[_Kept] = []
        self.discarded: list[str] = []
        """Why instances were not lent again."""

    @contextmanager
    def lend(
        self,
        extra: Mapping[str, Any] | None = None,
        *options: str,
        followers: Sequence[str] = (),
        prepare: Callable[[FluxInstance], None] | None = None,
    ) -> Iterator[FluxInstance]:
        """Yield an instance as `flux_instance` does; its lead and these are up.

        `prepare` changes one that has started, once for all tests that want it so.
        """
        key = repr((extra or {}, options, followers, prepare))
        kept = next((each for each in self._kept if each.key == key), None)
        if kept:
            self._kept.remove(kept)
        else:
            ends = ExitStack()
            with unmarked():
                instance = ends.enter_context(flux_instance(extra, *options))
                for host in followers:
                    instance.start_follower(host)
                if prepare:
                    prepare(instance)
            kept = _Kept(key, instance, Fresh(instance), ends)
        try:
            yield kept.instance
        finally:
            self._take_back(kept)

    def end(self) -> None:
        """End all that are kept."""
        while self._kept:
            self._kept.pop().ends.close()

    def _take_back(self, kept: _Kept) -> None:
        try:
            kept.fresh.restore()
        except (OSError, AssertionError, KeyError, ValueError) as error:
            self.discarded.append(f"{kept.key}: {error!r}")
            kept.ends.close()
            return
        self._kept.append(kept)
        while len(self._kept) > _KEPT:
            self._kept.pop(0).ends.close()


class Fresh:
    """What an instance has when it has started, and how it is made to be so again."""

    def __init__(self, instance: Lasting) -> None:
        self._instance = instance
        self._pids = instance.pids()
        self._wait_for_followers()
        self._config = self._path("broker.toml").read_bytes()
        self._files = set(instance.directory.iterdir())
        self._keys = self._kvs_keys()
        self._modules = self._loaded()
        self._plugins = self._ask("job-manager.jobtap", query_only=True)
        self._queues = self._queue_states()

    def restore(self) -> None:
        """Make it as it was. Raises if that cannot be."""
        self._instance.play_owner()
        assert self._instance.is_reusable, "said by its test"
        now = self._instance.pids()
        assert self._pids.items() <= now.items(), "a broker was ended"
        self._end_jobs()
        for host in now.keys() - self._pids.keys():
            self._instance.kill_follower(host)
        self._wait_for_followers()
        self._restore_config()
        self._restore_modules()
        self._restore_queues()
        self._purge_jobs()
        if drained := self._status()["drain"]:
            self._ask("resource.undrain", targets=",".join(drained))
        for key in self._kvs_keys() - self._keys:
            unlink = {"key": key, "flags": 0, "dirent": None}
            self._ask("kvs.commit", namespace="primary", flags=0, ops=[unlink])
        self._check()
        for path in set(self._instance.directory.iterdir()) - self._files:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in self._instance.directory.glob("*.log"):
            path.write_bytes(b"")

    def _wait_for_followers(self) -> None:
        ranks = {rank_of(host) for host in self._pids}
        wait_until(
            lambda: parse_idset(self._status()["online"]) == ranks,
            lambda: f"ranks {ranks} to be online, and no other: {self._status()}",
        )

    def _end_jobs(self) -> None:
        who = {"userid": _ANYBODY, "states": _ANY_STATE, "dry_run": False}
        self._ask("job-manager.raiseall", **who, severity=0, type="cancel")
        self._ask("job-manager.drain")

    def _purge_jobs(self) -> None:
        which = {"age_limit": -1.0, "num_limit": 0, "batch": 100, "force": True}
        while self._ask("job-manager.purge", **which)["count"] == 100:
            pass
        wait_until(
            lambda: not self._ask("job-list.job-stats")["job_states"]["total"],
            "jobs to be purged",
        )

    def _restore_config(self) -> None:
        if self._path("broker.toml").read_bytes() != self._config:
            self._path("broker.toml").write_bytes(self._config)
            self._ask("config.reload")

    def _restore_queues(self) -> None:
        for name, state in self._queue_states().items():
            was = self._queues[name]
            for verb in ("enable", "start"):
                if state[verb] != was[verb]:
                    which = {"name": name} if name else {}
                    how = {"all": False, verb: was[verb]}
                    self._ask(f"job-manager.queue-{verb}", **which, **how)

    def _restore_modules(self) -> None:
        for name, _ in self._loaded().items() - self._modules.items():
            self._ask("module.remove", name=name)
        for _, path in self._modules.items() - self._loaded().items():
            self._ask("module.load", path=path, args=[])

    def _check(self) -> None:
        for was, found in (
            (self._plugins, self._ask("job-manager.jobtap", query_only=True)),
            (self._queues, self._queue_states()),
            (self._modules, self._loaded()),
        ):
            assert found == was, f"{found}, no longer {was}"
        allocated = self._ask("sched.resource-status")["allocated"]
        assert not (allocated and allocated["execution"]["R_lite"]), "no free of ranks"
        try:
            self._ask("burst.ping")
        except OSError:
            return
        raise AssertionError("a daemon serves on")

    def _path(self, name: str) -> Path:
        return self._instance.directory / name

    def _ask(self, topic: str, **payload: Any) -> Any:
        return self._instance.rpc(topic, payload)

    def _status(self) -> Any:
        return self._ask("resource.status")

    def _kvs_keys(self) -> set[str]:
        listing = self._ask("kvs.lookup", key=".", namespace="primary", flags=_KVS_DIR)
        return set(listing["val"]["data"])

    def _loaded(self) -> dict[str, str]:
        found = self._ask("module.list")["mods"]
        return {module["name"]: module["path"] for module in found}

    def _queue_states(self) -> dict[str, Any]:
        names = self._ask("job-manager.queue-list")["queues"] or [""]
        found: dict[str, Any] = {}

        def read() -> bool:
            for name in names:
                which = {"name": name} if name else {}
                found[name] = self._ask("job-manager.queue-status", **which)
            return _OFFLINE not in str(found)

        wait_until(read, "the scheduler to be ready")
        return found


class _Kept(NamedTuple):
    key: str
    instance: FluxInstance
    fresh: Fresh
    ends: ExitStack
