# SPDX-License-Identifier: MIT
"""Runs tests in forks of a process that has imported what others wrote alone.

It is a program: it reads one job a line, as JSON, and answers in one line. It runs in a
copy of the tree, by the Python of the copy, and imports nothing else of this package.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

_IMPORTED = (
    *("hypothesis.stateful", "msgspec", "click", "rich.console", "rich.table", "zmq"),
    *("tomlkit", "tomli_w", "yaml", "prometheus_client", "pytest_timeout"),
)
_SUBREAPER = 36  # of prctl(2)
_MEMORY = 8 << 30  # bytes: a loop without an end may fill a list


class _Chosen:
    """The tests of a job, in its order; and the first that failed."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: place for place, test in enumerate(tests)}
        self.failed: list[str] = []
        self.ran = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.order]
        items.sort(key=lambda item: self.order[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.ran += report.when == "call"
        if report.failed:
            self.failed.append(report.nodeid)


def _test(job: dict[str, Any], answer: int) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (job["processor"], job["processor"] + 5))
    output = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(output, stream)
    chosen = _Chosen(job["tests"])
    files = list(dict.fromkeys(test.partition("::")[0] for test in job["tests"]))
    words = ["-q", "-p", "no:cacheprovider", "--tb=no"]
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "--hypothesis-seed=0"]
    words += [f"--timeout={job['each']}", *(["-x"] if job["stop"] else []), *files]
    status = pytest.main(words, plugins=[chosen])
    failed = chosen.failed or ([] if status in (0, 5) else [f"pytest: {status}"])
    os.write(answer, json.dumps({"failed": failed, "ran": chosen.ran}).encode())
    os._exit(0)


def _children() -> list[int]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(word) for word in text.split()]


def _run(job: dict[str, Any]) -> dict[str, Any]:
    started = time.monotonic()
    # What failed with another mutant is no example for this one.
    shutil.rmtree(".hypothesis/examples", ignore_errors=True)
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.close(reading)
        _test(job, writing)
    os.close(writing)
    waited = os.pidfd_open(child)
    ended = bool(select.select([waited], [], [], job["seconds"])[0])
    os.close(waited)
    # Also what tests have left behind, which is ours as the subreaper.
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    while left := _children():
        for process in left:
            if process != child or not ended:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with os.fdopen(reading, "rb") as file:
        text = file.read()
    if not text:
        why = "it ended" if ended else f"not done after {job['seconds']} s"
        text = json.dumps({"failed": [f"pytest: {why}"], "ran": 0}).encode()
    processor = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    seconds = {"seconds": time.monotonic() - started, "processor": processor}
    return {**json.loads(text), **{key: round(n, 2) for key, n in seconds.items()}}


def main() -> None:
    """Answer until there are no more jobs."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    sys.path.pop(0)  # where this file is
    sys.path.insert(0, os.getcwd())
    for name in _IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if "burst" in sys.modules:
        raise RuntimeError("burst is imported before it is changed")
    gc.freeze()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_run(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
