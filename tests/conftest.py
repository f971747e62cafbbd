# SPDX-License-Identifier: MIT
"""What all tests share: skips said aloud, and counts that the end of a run prints."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.e2e.programs import MONTH
from tests.flux_instance import FluxInstance
from tests.flux_pool import FluxPool
from tests.kubernetes.access import SHARED, WANTED
from tests.multiuser import lab
from tests.plugins.report.chromium import find_chromium
from tests.site import box, flux_host
from tests.slurm import slurm_lab
from tests.stages import STAGES

COUNTS: Counter[str] = Counter()
# Marks whose tests need more than Python, and what was counted of each.
_MARKED: dict[str, Counter[str]] = {
    mark: Counter() for mark in (*STAGES, "prometheus", "chromium")
}

# Files that take longest, the longest first: one that began last would have all other
# workers wait for it.
_LONGEST = (
    "tests/machine/test_machine.py",
    "tests/plugins/replay/test_live.py",
    "tests/benchmarks/test_week.py",
    "tests/core/test_refusal_cache_ticks.py",
    "tests/core/test_shortfall.py",
    "tests/flux/test_crash.py",
    "tests/intake/test_lead_batch.py",
    "tests/flux/test_needless.py",
    "tests/contract/test_flux_lead.py",
    "tests/flux/test_silent.py",
)
_APART = 4
"""Of so many of these any worker runs each test: they share nothing."""
# Of what tests are given that becomes a part of their names.
_LONGEST_NAME = 200


def _place(item: pytest.Item) -> int:
    """Return a test's place in the order: that of its file, if it takes long."""
    places = (n for n, name in enumerate(_LONGEST) if name in item.nodeid)
    return next(places, len(_LONGEST))


# How long an example takes says how busy the machine is, nothing of a test. A change is
# judged by the same examples as the one before it.
settings.register_profile(
    "ours",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ours")

# A shell that runs us in the background has Ctrl-C ignored, by all that we start too.
signal.signal(signal.SIGINT, signal.default_int_handler)


# What is said has the same hours everywhere. A test of another time zone sets its own.
os.environ["TZ"] = "UTC"
time.tzset()

# What rich reads: a person's or a CI's colors are for pytest, not for what it runs.
for _name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(_name, None)

# Neither a person's profile and region nor credentials of AWS are for tests.
for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]
os.environ |= {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}

# A site's proxy does not reach the servers that tests start on this host.
if {"http_proxy", "https_proxy", "all_proxy"} & {name.lower() for name in os.environ}:
    _direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY", "")
    _direct = ",".join(filter(None, (_direct, "127.0.0.1", "localhost", "::1")))
    os.environ |= {"no_proxy": _direct, "NO_PROXY": _direct}


@pytest.fixture
def extra() -> dict[str, Any]:
    """Return tables for the lead's configuration; tests parametrize it."""
    return {}


@pytest.fixture(scope="session")
def flux_pool() -> Iterator[FluxPool]:
    """Give the instances that this worker's tests have one after another."""
    pool = FluxPool()
    yield pool
    pool.end()


@pytest.fixture
def instance(flux_pool: FluxPool, extra: Mapping[str, Any]) -> Iterator[FluxInstance]:
    """Give a Flux instance with these tables, unless a module has one of its own."""
    with flux_pool.lend(extra) as instance:
        yield instance


@pytest.fixture(autouse=True)
def _logger_as_it_was() -> Iterator[None]:
    """Undo what `burst.log.start` sets: a later test would miss what is logged."""
    logger = logging.getLogger("burst")
    handlers, propagate, level = logger.handlers[:], logger.propagate, logger.level
    yield
    logger.handlers[:], logger.propagate = handlers, propagate
    logger.setLevel(level)


@pytest.fixture(autouse=True)
def _ctrl_c_as_it_was() -> Iterator[None]:
    """Undo what Flux's Python does to Ctrl-C.

    It waits with the default handler, which it leaves after an error. Where a later
    test presses Ctrl-C in this process, that would end the process.
    """
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


def _missing() -> dict[str, str]:
    """Return the marks whose tests cannot run on this machine, and for want of what."""
    lacking = {
        "multiuser": lab.missing(),
        "site": lab.missing() or flux_host.missing() or box.missing(),
        "slurm": slurm_lab.missing(),
    }
    missing = {mark: f"want of {what}" for mark, what in lacking.items() if what}
    if WANTED not in os.environ:
        missing["kubernetes"] = f"want of a Kubernetes (make e2e, or {WANTED}=1)"
    if not shutil.which("flux"):
        missing["flux"] = "want of a real Flux (flux on PATH)"
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        missing["prometheus"] = "want of Prometheus (Debian's package prometheus)"
    if not find_chromium():
        missing["chromium"] = "want of a browser (chromium on PATH)"
    if "KUBELAB" not in os.environ:
        missing["nodes"] = "want of real nodes (make e2e)"
    if "KINDLAB_IMAGE" not in os.environ:
        missing["kind"] = "want of a docker for kind (make e2e)"
    if MONTH not in os.environ:
        missing["month"] = f"want of minutes (make e2e, or {MONTH}=1000)"
    return missing


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """End what pytest-cov began in a worker of pytest-xdist before its own measurement.

    That would go on where its own pauses, in tests marked no_cover (pytest-cov 7.1).
    """
    coverage = session.config.pluginmanager.get_plugin("_cov")
    measures = coverage and coverage.cov_controller
    if measures and hasattr(session.config, "workerinput"):
        measures.cov.stop()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its length.

    Workers send each name to and fro, one of 200 kB too.
    """
    if not isinstance(val, str | bytes) or len(val) <= _LONGEST_NAME:
        return None
    return f"{argname}-of-{len(val)}"


def pytest_collection() -> None:
    """What is collected lives to the end: to look through it for garbage is in vain."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look from now on through what tests make, not through ten thousand tests."""
    gc.enable()
    gc.freeze()


# Before pytest-xdist's own, which reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run; begin with what takes longest."""
    items.sort(key=_place)
    missing = _missing()
    named: dict[Path, str] = {}
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        # Of pytest-xdist: a file's tests share instances, and these one control plane,
        # unless the stage has made one for all.
        shared = "kubernetes" in marks
        group = "kubernetes" if shared else item.path.as_posix()
        alone = _place(item) < _APART or "nodes" in marks
        alone = alone or (shared and SHARED in os.environ)
        if "xdist_group" not in marks:
            item.add_marker(pytest.mark.xdist_group(item.nodeid if alone else group))
        for mark in marks & missing.keys():
            item.add_marker(pytest.mark.skip(reason=missing[mark]))
        if stages := marks & set(STAGES):
            if item.path not in named:
                named[item.path] = item.path.read_text()
            # `tests.stages.files_of` finds it by that.
            text = named[item.path]
            if unnamed := {mark for mark in stages if f"mark.{mark}" not in text}:
                raise pytest.UsageError(f"{item.path} does not name {unnamed}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Count what ran and what was skipped of each kind."""
    report = (yield).get_result()
    if report.when == "call" or report.skipped:
        # A test that was expected to fail counts as skipped too, without a reason.
        why = report.longrepr if isinstance(report.longrepr, tuple) else ("", 0, "")
        outcome = why[2] if report.skipped else "ran"
        for mark, counts in _MARKED.items():
            if item.get_closest_marker(mark):
                counts[outcome.removeprefix("Skipped: ")] += 1


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send what a worker of pytest-xdist counted to where the summary is printed."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["counts"] = dict(COUNTS)
        output["marked"] = {mark: dict(counts) for mark, counts in _MARKED.items()}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a worker counted; one that crashed counted nothing."""
    output = getattr(node, "workeroutput", {})
    COUNTS.update(output.get("counts", {}))
    for mark, counts in output.get("marked", {}).items():
        _MARKED[mark].update(counts)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was tried, and what was not for want of what."""
    for what, count in COUNTS.items():
        terminalreporter.write_line(f"{what}: {count}")
    for mark, counts in _MARKED.items():
        for outcome, count in counts.items():
            told = "ran" if outcome == "ran" else f"SKIPPED for {outcome}"
            terminalreporter.write_line(f"tests marked {mark}: {count} {told}")
