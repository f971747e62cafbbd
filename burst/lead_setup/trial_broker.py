# SPDX-License-Identifier: MIT
"""Starts a broker on a copy of a lead's configuration, before the lead is restarted.

Mistakes in hosts, resources, queues and limits show only when a broker starts, and then
the lead is down. The trial is rank 0 alone, with its own sockets and run directory,
without network and state, and only with modules that read the configuration. So it can
run beside the lead, as the lead's user, who has to be able to read the files.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from burst.errors import ConfigError
from burst.kits import certificate
from burst.lead_setup.add_slots import declared_hosts
from burst.model.ranks import parse_idset
from burst.model.resource_set import ResourceSet, resource_set

DEADLINE_S = 600.0
"""Seconds for the trial. A broker of a thousand ranks takes two; only one that hangs
takes this long."""
_MODULES = ("content", "kvs", "kvs-watch", "resource", "job-manager")
# Prefixes of variables of another instance, or of a job that runs this command: the
# broker would join them.
_NOT_PASSED = ("FLUX_", "PMI_", "SLURM_")
_SAID = 2
_TIME = re.compile(r"[A-Z][a-z]{2} +\d+ [\d:.]+ [A-Z]+ \d{4} ")
_ERROR = re.compile(r"[\w.-]+\.(emerg|alert|crit|err)\[")


class TrialResult(msgspec.Struct, frozen=True):
    """How the trial of the broker ended."""

    resources: ResourceSet | None
    """R as Flux makes it from the files; None if the broker did not start."""
    excluded: frozenset[int] = frozenset()
    """Ranks of R that get no jobs."""
    said: tuple[str, ...] = ()
    """Why the broker did not start, in Flux's words."""


def try_broker(
    tables: Mapping[str, Any],
    flux: str,
    user: str = "",
    deadline_s: float = DEADLINE_S,
) -> TrialResult:
    """Start a broker with these tables, and end it. Raises ConfigError.

    `flux` is the program. If root runs this, the broker runs as `user`: as root it
    could read what the lead's user cannot.
    """
    host = declared_hosts(dict(tables))[0]
    with _directory(user) as directory:
        _write_files(directory, tables, host)
        if user:
            _give(directory, user)
        command = _command(directory, flux, host)
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_NOT_PASSED)
        }
        try:
            broker = subprocess.Popen(
                command,
                cwd=directory,
                env=environment,
                user=user or None,
                group=pwd.getpwnam(user).pw_gid if user else None,
                extra_groups=_groups(user) if user else None,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise ConfigError(
                f"a broker cannot be started: {error}",
                "put the directory of the lead's flux on PATH",
            ) from error
        return _await(broker, deadline_s)


def _await(broker: subprocess.Popen[str], deadline_s: float) -> TrialResult:
    """Wait for the broker's end; after the deadline, kill all that it has started."""
    try:
        printed, said = broker.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        os.killpg(broker.pid, signal.SIGKILL)
        _, said = broker.communicate()
        late = (f"it did not end within {deadline_s:g}s", *_errors(said))
        return TrialResult(None, said=late)
    try:
        status = json.loads(printed)
        excluded = parse_idset(status["exclude"])
        return TrialResult(resource_set(status["R"]), excluded)
    except (ValueError, KeyError):
        return TrialResult(None, said=_errors(said) or ("it printed nothing",))


def trial_tables(
    tables: Mapping[str, Any], host: str, directory: Path
) -> dict[str, Any]:
    """Return a configuration for the trial: that of the lead without its network.

    If a host has several entries, the first counts (flux-config-bootstrap(5)).
    """
    socket = f"ipc://{directory}/overlay"
    first = {"host": host, "bind": socket, "connect": socket}
    bootstrap = {
        **tables["bootstrap"],
        "curve_cert": str(directory / "curve.cert"),
        "hosts": [first, *tables["bootstrap"]["hosts"]],
    }
    # What the site has broker modules and systemd do is no part of the trial.
    return {**tables, "bootstrap": bootstrap, "systemd": {"enable": False}}


@contextmanager
def _directory(user: str) -> Iterator[Path]:
    """Yield a private directory with a short path: that of a socket has 100 bytes."""
    path = Path(tempfile.mkdtemp(prefix="burst-", dir="/tmp"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=bool(user))


def _write_files(directory: Path, tables: Mapping[str, Any], host: str) -> None:
    config = trial_tables(tables, host, directory)
    (directory / "config.json").write_text(json.dumps(config))
    certificate.write(certificate.create(host), directory / "curve.cert")
    (directory / "rc1").write_text(_script(f"flux module load {m}" for m in _MODULES))
    (directory / "rc3").write_text(
        _script(f"flux module remove -f {m}" for m in reversed(_MODULES))
    )
    (directory / "run").mkdir(mode=0o700)


def _script(lines: Iterator[str]) -> str:
    return "\n".join([*lines, ""])


def _command(directory: Path, flux: str, host: str) -> list[str]:
    """Return the broker's argv; its program prints R once the resource module has it.

    `resource.status` waits for R, `resource.get` does not.
    """
    ask = (
        "import json, flux; print(json.dumps(flux.Flux().rpc('resource.status').get()))"
    )
    return [
        *(flux, "broker", f"--config-path={directory}/config.json"),
        *(f"-Shostname={host}", "-Sbroker.quorum=1", f"-Srundir={directory}/run"),
        f"-Slocal-uri=local://{directory}/run/local",
        # Run by `sh`, as /tmp may be mounted noexec.
        f"-Sbroker.rc1_path=sh -e {directory}/rc1",
        f"-Sbroker.rc3_path=sh -e {directory}/rc3",
        *("sh", "-c", f"{shlex.quote(flux)} python -c {shlex.quote(ask)}"),
    ]


def _give(directory: Path, user: str) -> None:
    """Make the broker's user the owner of the files."""
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise ConfigError(
            f"no user of this host is called {user}, as whom a broker is to start",
            "run it as the owner of the instance",
        ) from None
    for path in (*directory.iterdir(), directory):
        os.chown(path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)


def _groups(user: str) -> list[int]:
    return os.getgrouplist(user, pwd.getpwnam(user).pw_gid)


def _errors(text: str) -> tuple[str, ...]:
    """Return the first errors of a broker's log, without the time.

    Later errors follow from the first. Lines of another form are those of programs.
    """
    lines = [_TIME.sub("", line).strip() for line in text.splitlines()]
    errors = [line for line in lines if _ERROR.match(line)]
    return tuple((errors or [line for line in lines if line])[:_SAID])
