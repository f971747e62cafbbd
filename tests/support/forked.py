# SPDX-License-Identifier: MIT
"""Programs in Python, forked from a process that has imported what they need.

Each is a process of its own, with its own words, environment and files, as if it had
been started. It is spared the start of Python and the imports, which are most of what a
command costs.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.marked import unmarked
from tests.support.waiting import HANG_S

_FLUX = shutil.which("flux") or ""
_BESIDE = Path(sys.executable).parent
_PATHS = ("FLUX_EXEC_PATH", "FLUX_CONNECTOR_PATH", "FLUX_MODULE_PATH")
_OURS = ("burst", "flux-burst", "run-burst")
Files = tuple[str, str, str]
"""Standard input, output and error."""


class Forked:
    """A program that runs: what tests use of `subprocess.Popen`."""

    def __init__(
        self,
        argv: Sequence[str],
        files: Files,
        environment: Mapping[str, str],
        cwd: str,
        first: Callable[[], object] = bool,
    ) -> None:
        """Run a script of Python, `argv[0]`, or the module that follows `-m`.

        `first` is called in its process, before.
        """
        for written in files[1:]:
            Path(written).touch()
        args = (list(argv), files, dict(environment), cwd, first)
        self._process = _server().Process(target=_enter, args=args)
        self._process.start()
        assert self._process.pid
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return its exit status, negative for a signal; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status once it has ended."""
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            # It may have ended since, and the server have reaped it.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it by SIGKILL, if it runs."""
        self.send_signal(signal.SIGKILL)


def run_program(
    argv: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    *,
    stdin: str = "",
    timeout: float = HANG_S,
    first: Callable[[], object] = bool,
) -> subprocess.CompletedProcess[str]:
    """Run a program as `subprocess.run` does, forked if it is one of Flux's or ours.

    `first` is called in the process that is forked.
    """
    forked = find_script(argv)
    if not forked:
        return subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            text=True,
            env=dict(environment),
            cwd=cwd,
            timeout=timeout,
            check=False,
        )
    with TemporaryDirectory(prefix="forked-", dir="/tmp") as place:
        files = (f"{place}/in", f"{place}/out", f"{place}/err")
        given, *written = map(Path, files)
        given.write_text(stdin)
        given_by_flux = _flux_paths() if argv[0] == _FLUX else {}
        whole = {**given_by_flux, **environment}
        process = Forked(forked, files, whole, str(cwd), first)
        try:
            status = process.wait(timeout)
        finally:
            process.kill()
        said = [path.read_text() for path in written]
    return subprocess.CompletedProcess(argv, status, *said)


def find_script(argv: Sequence[str]) -> list[str]:
    """Return the script that is run, and its words; nothing if it is no script."""
    program, *words = argv
    if Path(program).suffix == ".py":
        return [program, *words]
    if Path(program).parent == _BESIDE and Path(program).name in _OURS:
        return [program, *words]
    if program == _FLUX and words:
        name = f"flux-{words[0]}"
        for path in (Path(_flux_paths()[_PATHS[0]], f"{name}.py"), _BESIDE / name):
            if path.exists():
                return [str(path), *words[1:]]
    return []


@cache
def _flux_paths() -> dict[str, str]:
    """Return what the command `flux` adds to the environment of the command it runs."""
    asked = [_FLUX, "env", "printenv", *_PATHS]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    return dict(zip(_PATHS, done.stdout.splitlines(), strict=True))


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.forked_imports"])
    with unmarked():
        forkserver.ensure_running()
    return context


def _enter(
    argv: list[str],
    files: Files,
    environment: dict[str, str],
    cwd: str,
    first: Callable[[], object],
) -> None:
    """Become the program, in the process that was forked."""
    os.environ.clear()
    os.environ.update(environment)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, path in enumerate(files):
        opened = os.open(path, flags if number else os.O_RDONLY, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    first()
    os.chdir(cwd)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.argv = argv
    paths = environment.get("PYTHONPATH", "").split(":")
    # Without the directory in which the server was started.
    sys.path[:] = [path for path in (*paths, *sys.path) if path]
    if argv[0] == "-m":
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(argv[0], run_name="__main__")
