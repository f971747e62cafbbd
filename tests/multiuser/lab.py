# SPDX-License-Identifier: MIT
"""Users, munge and a setuid IMP on this machine, without a change to the machine.

A lab is a mount namespace in which `flux`, who owns the instance, and the guests `ann`
and `bob` are users, munged serves them by a key of its own, `flux-imp` is setuid, and
flux-security is configured for a system instance. What differs from the machine lies
in memory and is gone with the namespace:

    /etc            passwd, group, munge/munge.key
    /run            munge/munge.socket.2
    /home           flux, ann, bob; each is its user's alone
    PREFIX/etc/flux security/conf.d, imp/conf.d; of the Flux that is on PATH
    flux-imp        owned by root, mode 4755
    /root and such  may be passed through, if the Flux or this Python is below them

Pids, the network and /tmp are the machine's. All processes in the namespace are killed
when the lab ends.

    lab.run("ann", "flux", "submit", "hostname")     returns what it printed
    lab.start("flux", "flux", "broker", ...)         returns the process itself

Needs root, unshare, setpriv and nsenter (util-linux), munge, and a Flux that was built
with flux-security; `missing()` says what is not there.

Sources: unshare(1), mount_namespaces(7), munged(8), flux-config-security(5),
flux-config-access(5), the administrator's guide of Flux.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import IO

import tomli_w

from tests.support.forked import Forked, find_script, run_program
from tests.support.waiting import HANG_S, wait_until

OWNER = "flux"
GUESTS = ("ann", "bob")
UIDS = {OWNER: 61000, "ann": 61001, "bob": 61002, "munge": 61009}
"""Of all users of a lab; the group of each has the same number."""

MUNGE_SOCKET = Path("/run/munge/munge.socket.2")

_FLUX = shutil.which("flux") or ""
_TOOLS = ("unshare", "nsenter", "setpriv", "munged", "munge", "unmunge")
_REPOSITORY = Path(__file__).parents[2]
_CLONE_NEWNS = 0x20000
_PR_SET_DUMPABLE = 4


@cache
def missing() -> str:
    """Return what a lab lacks on this machine, empty if it has all."""
    if not _FLUX:
        return "flux on PATH"
    if not imp_path().exists():
        return "a Flux built with flux-security (flux-imp)"
    absent = [tool for tool in _TOOLS if not shutil.which(tool)]
    if absent:
        return f"programs: {', '.join(absent)}"
    if os.geteuid() != 0:
        return "root"
    tried = subprocess.run(["unshare", "--mount", "true"], check=False)
    return "the right to unshare mounts" if tried.returncode else ""


@cache
def _builtin(name: str) -> Path:
    ask = [_FLUX, "config", "builtin", name]
    done = subprocess.run(ask, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def imp_path() -> Path:
    """Return where this Flux has its IMP."""
    return _builtin("shell_path").with_name("flux-imp")


def flux_etc() -> Path:
    """Return the directory of this Flux's configuration, which the IMP reads too."""
    return _builtin("shell_initrc").parents[1]


def flux_prefix() -> Path:
    """Return where this Flux is installed, its configuration perhaps elsewhere."""
    return _builtin("shell_path").parents[2]


class Lab:
    """One namespace; `close` ends all that runs in it."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="bm-", dir="/tmp"))
        self.directory.chmod(0o755)
        self._munged: subprocess.Popen[bytes] | None = None
        script = self.directory / "make"
        script.write_text(_script(self.directory))
        command = ["unshare", "--mount", "--propagation=private", "sh", str(script)]
        with (self.directory / "lab.log").open("wb") as log:
            self._holder = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command], stdout=log, stderr=log
            )
        try:
            ready = self.directory / "ready"
            wait_until(
                lambda: ready.exists() or self._holder.poll() is not None,
                lambda: f"the lab: {self.log()}",
            )
            assert ready.exists(), self.log()
            self.start_munged()
            tried = self.run(OWNER, sys.executable, "-c", "import burst")
            assert tried == "", tried
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def log(self) -> str:
        """Return what making the lab printed."""
        return (self.directory / "lab.log").read_text()

    def close(self) -> None:
        """Kill all that runs in the namespace, which ends with it."""
        deadline = time.monotonic() + HANG_S
        while pids := self.pids():
            assert time.monotonic() < deadline, f"still there: {pids}"
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._holder.poll()
            time.sleep(0.02)
        for process in (self._holder, self._munged):
            if process is not None:
                process.kill()
                process.wait()
        shutil.rmtree(self.directory)

    def pids(self) -> list[int]:
        """Return the processes in the lab, without zombies."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with suppress(OSError):
                    if (entry / "ns/mnt").readlink() == self._namespace():
                        found.append(int(entry.name))
        return found

    def _namespace(self) -> Path:
        if not hasattr(self, "_link"):
            self._link = Path(f"/proc/{self._holder.pid}/ns/mnt").readlink()
        return self._link

    def start_munged(self) -> None:
        """Start munged, and return once it answers."""
        run = MUNGE_SOCKET.parent
        files = [f"--{name}-file={run}/{name}" for name in ("log", "pid", "seed")]
        self._munged = self.start("munge", "munged", "--foreground", *files)
        wait_until(lambda: not self.try_run("ann", "munge", "-n").returncode, "munged")

    def kill_munged(self) -> None:
        """Kill munged as `kill -9` does."""
        assert self._munged is not None
        self._munged.kill()
        self._munged.wait()

    def start(
        self,
        user: str,
        *command: str,
        log: IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
        first: str = "",
    ) -> subprocess.Popen[bytes]:
        """Start a command as a user; the process that is returned is the command's.

        `log` gets what it prints, by default nothing does. `first` is what the process
        does in a shell as root, outside of the lab, before it is the command.
        """
        out = log or subprocess.DEVNULL
        words = shlex.join(self._as_user(user, command, env))
        return subprocess.Popen(
            ["sh", "-c", f"{first} exec {words}"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT if log else out,
            cwd="/",
        )

    def try_run(
        self,
        user: str,
        *command: str,
        env: Mapping[str, str] | None = None,
        given: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as a user and return how it ended; it may fail.

        The user may be any number. What is Python is forked.
        """
        words = self._script(command)
        if find_script(words):
            environment = {**_environment(user), **(env or {})}
            first = partial(_become, self._holder.pid, _number(user))
            limit = HANG_S
            return run_program(
                words, environment, Path("/"), stdin=given, timeout=limit, first=first
            )
        return subprocess.run(
            self._as_user(user, command, env),
            input=given,
            capture_output=True,
            text=True,
            cwd="/",
            timeout=HANG_S,
            check=False,
        )

    def _script(self, command: Sequence[str]) -> list[str]:
        """Return a command as `find_script` knows it."""
        if command[:3] == ("python", "-m", "burst"):
            return [str(Path(sys.executable).with_name("burst")), *command[3:]]
        if command[:3] == ("flux", "python", "-c"):
            digest = hashlib.sha256(command[3].encode()).hexdigest()
            script = self.directory / f"{digest}.py"
            script.write_text(command[3])
            return [str(script), *command[4:]]
        return [_FLUX if command[0] == "flux" else command[0], *command[1:]]

    def fork(
        self, user: str, *command: str, log: Path, env: Mapping[str, str]
    ) -> Forked:
        """Start a command of Python as `start` does."""
        return Forked(
            find_script(self._script(command)),
            (os.devnull, str(log), str(log)),
            {**_environment(user), **env},
            "/",
            partial(_become, self._holder.pid, _number(user)),
        )

    def run(
        self, user: str, *command: str, env: Mapping[str, str] | None = None
    ) -> str:
        """Run a command as a user and return what it printed."""
        done = self.try_run(user, *command, env=env)
        assert done.returncode == 0, (user, command, done.stdout, done.stderr)
        return done.stdout

    def _as_user(
        self, user: str, command: Sequence[str], env: Mapping[str, str] | None
    ) -> list[str]:
        number, given = _number(user), {**_environment(user), **(env or {})}
        return [
            *("nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--"),
            *("setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"),
            *("--inh-caps=-all", "env", "-i"),
            *(f"{name}={value}" for name, value in given.items()),
            *command,
        ]


def _number(user: str) -> int:
    return int(user) if user.isdecimal() else UIDS.get(user, 0)


def _environment(user: str) -> dict[str, str]:
    home = "/root" if user == "root" else f"/home/{user}"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # Our code is this checkout's, wherever the packages are installed.
    ours = f"{_REPOSITORY}:{_REPOSITORY / 'plugins'}"
    given = {"HOME": home, "USER": user, "LOGNAME": user, "PATH": path}
    return given | {"LANG": "C.UTF-8", "SHELL": "/bin/sh", "PYTHONPATH": ours}


def _become(place: int, number: int) -> None:
    """Be this user, among the mounts of that process: as nsenter and setpriv do."""
    libc = ctypes.CDLL(None, use_errno=True)
    namespace = os.open(f"/proc/{place}/ns/mnt", os.O_RDONLY)
    if libc.setns(namespace, _CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(namespace)
    os.setgroups([])
    os.setresgid(number, number, number)
    os.setresuid(number, number, number)
    # Else /proc/self is root's, as of no process that a user starts.
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def end_process(process: subprocess.Popen[bytes] | Forked) -> None:
    """End a process in order, if it runs, and by SIGKILL where that takes too long."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(HANG_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _script(directory: Path) -> str:
    """Return the script that makes the lab and then waits in it for ever."""
    etc, imp, shell = flux_etc(), imp_path(), _builtin("shell_path")
    sign = {"max-ttl": 1209600, "default-type": "munge", "allowed-types": ["munge"]}
    allowed = {"allowed-users": [OWNER], "allowed-shells": [str(shell)]}
    lines = ["set -e", "umask 022", "mount -t tmpfs -o mode=0755 lab /mnt"]
    overlays = [Path("/etc"), Path("/run"), etc, *closed_ancestors()]
    for number, place in enumerate(overlays):
        layer = f"/mnt/{number}"
        lines += [
            f"mkdir -p {layer}/up {layer}/work",
            f"mount -t overlay lab -o lowerdir={place},upperdir={layer}/up,"
            f"workdir={layer}/work {place}",
        ]
    lines += [f"chmod a+x {place}" for place in closed_ancestors()]
    lines += ["mount -t tmpfs -o mode=0755 homes /home"]
    for user, number in UIDS.items():
        lines += [
            # Another user or group of that name, such as a package's, goes first.
            f"sed -i '/^{user}:/d' /etc/passwd /etc/group",
            f"echo '{user}:x:{number}:{number}:{user}:/home/{user}:/bin/sh'"
            " >> /etc/passwd",
            f"echo '{user}:x:{number}:' >> /etc/group",
            f"install -d -m 0700 -o {number} -g {number} /home/{user}",
        ]
    munge = UIDS["munge"]
    lines += [
        *("rm -rf /etc/munge /run/munge", "mkdir -m 0700 /etc/munge"),
        # Of this lab alone; the namespace's memory is the only place where it is.
        f"printf %s {secrets.token_hex(32)} > /etc/munge/munge.key",
        f"chmod 0400 /etc/munge/munge.key; chown -R {munge}:{munge} /etc/munge",
        f"install -d -m 0755 -o {munge} -g {munge} /run/munge",
        f"mkdir -p {etc}/security/conf.d {etc}/imp/conf.d",
        f"rm -f {etc}/security/conf.d/* {etc}/imp/conf.d/*",
        f"cat > {etc}/security/conf.d/security.toml << 'END'",
        *(tomli_w.dumps({"sign": sign}).splitlines()),
        *("END", f"cat > {etc}/imp/conf.d/imp.toml << 'END'"),
        *(tomli_w.dumps({"exec": allowed}).splitlines()),
        *("END", f"install -m 4755 -o root -g root {imp} /mnt/flux-imp"),
        f"mount --bind /mnt/flux-imp {imp}",
        f"touch {directory}/ready",
        "exec sleep infinity",
    ]
    return "\n".join([*lines, ""])


def closed_ancestors() -> list[Path]:
    """Return directories above what all users run that only root may pass through."""
    needed = {Path(sys.prefix), Path(sys.base_prefix), _REPOSITORY, flux_etc()}
    needed.add(Path(sys.executable).resolve())
    above = {parent for path in needed for parent in path.parents}
    return sorted(path for path in above if not path.stat().st_mode & 0o001)
