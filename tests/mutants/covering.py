# SPDX-License-Identifier: MIT
"""Which tests run a line in their own process, and what each costs: measured once.

Only what runs in the process of a test counts. So tests that start programs are left
out: of the commands, of the embedded lead, of contracts on real providers, and on a
real Flux all that start a daemon. Those with users, Kubernetes, nodes, kind or a month
are too, and the random machine: its few tests run nearly each line and take minutes.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import sys
import tempfile
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tests.mutants.overlay import Overlay, run_pytest, tracked
from tests.mutants.sample import ROOMS, Place, sources

_IGNORED: tuple[str, ...] = (
    *("demo", "docs", "examples", "benchmarks", "manifests", "multiuser", "month"),
    "site",
    *("cli", "e2e", "embedded", "kind", "kubernetes", "nodes", "mutants"),
    "machine/test_machine.py",
    *("test_house.py", "test_typed.py", "contract/test_embedded_lead.py"),
    *("contract/test_provider_kind.py", "contract/test_provider_mutants.py"),
    *(
        "contract/test_provider_local_embedded.py",
        "contract/test_provider_local_flux.py",
    ),
)
_REAL = ("flux", "contract", "kits", "model")


class Cost(NamedTuple):
    """What one test took when nothing was changed, in seconds."""

    processor: float
    wall: float


class Covering:
    """Answers which tests are to run for a mutant."""

    def __init__(self, tree: Path, cache: Path, workers: int) -> None:
        self._tree = tree
        digest = hashlib.sha256()
        for path in tracked(tree):
            if path.suffix in (".py", ".toml") and "mutants" not in path.parts:
                digest.update(path.read_bytes())
        self.costs: dict[str, Cost] = {}
        self._bits: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._size: dict[str, int] = defaultdict(int)
        real = shutil.which("flux") and (tree / "tests/flux").exists()
        for kind in ("pure", "flux") if real else ("pure",):
            kept = cache / f"{kind}-{digest.hexdigest()[:16]}"
            if not (kept / "done").exists():
                _measure(tree, kept, kind, workers)
            self._read(kept)

    def _read(self, kept: Path) -> None:
        for line in (kept / "costs").read_text().splitlines():
            test, passed, processor, wall = json.loads(line)
            if passed:
                self.costs[test] = Cost(processor, wall)
        query = (
            "select file.path, context.context, line_bits.numbits from line_bits "
            "join file on file.id = file_id join context on context.id = context_id"
        )
        with closing(sqlite3.connect(kept / "coverage")) as database:
            for path, context, numbits in database.execute(query):
                test = context.rpartition("|")[0]
                if test in self.costs or not context:
                    lines = int.from_bytes(numbits, "little")
                    self._bits[path][test] |= lines
                    self._size[test] += lines.bit_count()

    def tests(self, file: str, place: Place) -> list[str]:
        """Return the tests for a place: the nearest first, a file's tests together."""
        covered = self._bits.get(file, {})
        first, line = place.lines
        tests: list[str] = []
        for looked in range(line, first - 1, -1):
            tests = [test for test, bits in covered.items() if bits >> looked & 1]
            if tests:
                break
        # What runs at the import belongs to all that use the file, or what imports it.
        if place.imported or "" in tests:
            tests = list({*covered} - {""}) or self._of_importers(file)
        folder = file.replace("burst/", "tests/", 1).split("/")[:-1]
        by_file = defaultdict(list)
        for test in sorted(tests, key=lambda test: (self._size[test], test)):
            by_file[test.partition("::")[0]].append(test)

        def near(name: str) -> tuple[int, int]:
            common = sum(map(str.__eq__, folder, name.split("/")))
            return -common, self._size[by_file[name][0]]

        return [test for name in sorted(by_file, key=near) for test in by_file[name]]

    def _of_importers(self, file: str) -> list[str]:
        module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        named = re.compile(rf"^(from|import) {re.escape(module)}\b", re.MULTILINE)
        found: set[str] = set()
        for room in ROOMS:
            for path in sources(self._tree, room):
                if named.search(path.read_text()):
                    name = path.relative_to(self._tree).as_posix()
                    found.update(self._bits.get(name, {}))
        return list(found - {""})


def _measure(tree: Path, kept: Path, kind: str, workers: int) -> None:
    """Run the tests once, with coverage that knows which test runs."""
    kept.mkdir(parents=True, exist_ok=True)
    for path in kept.iterdir():
        path.unlink()
    settings = kept / "settings"
    room = "\n".join(f"    */{room}/*" for room in ROOMS)
    settings.write_text(
        f"[run]\ninclude =\n{room}\ndata_file = {kept}/coverage\n"
        "relative_files = true\nconcurrency = thread\n"
    )
    env = {"MUTANTS_COSTS": str(kept / "costs"), "MUTANTS_TESTS": kind}
    env["PYTHONPATH"] = str(Path(__file__).parent)
    words = ["-q", "-p", "record_costs", "-p", "no:cacheprovider", "--tb=short"]
    words += ["--cov", f"--cov-config={settings}", "--cov-context=test"]
    words += ["--cov-report=", "--hypothesis-seed=0"]
    words += [f"--ignore=tests/{name}" for name in _IGNORED]
    words += ["-n", str(workers), "--dist=loadfile"] if workers else []
    words += [f"tests/{name}" for name in _REAL] if kind == "flux" else ["tests"]
    with tempfile.TemporaryDirectory(prefix="mutants") as root:
        overlay = Overlay(tree, Path(root, "t"))
        status = run_pytest(overlay, words, env)
    if status not in (0, 1):
        raise RuntimeError(f"the tests ended with status {status}")
    sys.stderr.write("tests that failed, of which there should be none, are left out\n")
    (kept / "done").touch()
