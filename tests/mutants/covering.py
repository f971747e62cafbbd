# SPDX-License-Identifier: MIT
"""A copy of a tree whose tests are measured once, and then run on mutants.

The checkout is never changed. What counts is what runs in the process of a test: a
program that a test starts is not measured, so a mutant is not looked for there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from coverage import CoverageData

from tests.mutants.sample import PACKAGES, Mutant
from tests.stages import PURE, of_stage

_LEFT_OUT = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__")
_SETTINGS = "[run]\nrelative_files = true\nconcurrency = thread\ninclude ="
_PYTEST = ("pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0")
# A loop without an end may fill a list: bytes.
_MEMORY = 8 << 30
# Seconds of a test that waits for what never comes, and of tests that do not end.
_HANGS, _ENDLESS = 60, 300
# Files of tests that run before all others are imported: the nearest catch most.
_FIRST = 3


class Copy:
    """A tree below an empty directory; all that runs there imports it."""

    def __init__(self, tree: Path, root: Path) -> None:
        self.root = root
        shutil.copytree(tree, root, True, shutil.ignore_patterns(*_LEFT_OUT))
        # What mkdocs has built; tests/site is another.
        shutil.rmtree(root / "site", ignore_errors=True)
        # Two mutants of a second may be of one size: compiled code is known by a hash.
        words = ["compileall", "-q", "--invalidation-mode", "checked-hash", *PACKAGES]
        self._run(words, seconds=0)

    def _run(self, words: Sequence[str], seconds: int) -> tuple[int, str]:
        """Run a module for `seconds`, or as long as it takes if they are 0."""
        env = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""}
        env["PYTHONPATH"] = f"{self.root}:{self.root}/plugins"
        # SIGINT first: fixtures end what they have started.
        bound = ["timeout", "--signal=INT", "--kill-after=60", str(seconds)]
        command = [*bound, "prlimit", f"--as={_MEMORY}", sys.executable, "-m", *words]
        done = subprocess.run(
            command, check=False, cwd=self.root, env=env, text=True, capture_output=True
        )
        return done.returncode, done.stdout + done.stderr

    def failed(self, tests: Sequence[str]) -> str:
        """Run tests until one fails; return which, or nothing."""
        # What failed with another mutant is no example for this one.
        shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)
        words = [*_PYTEST, "-x", "--tb=no", "-rfE", f"--timeout={_HANGS}", *tests]
        status, output = self._run(words, _ENDLESS)
        named = re.search(r"^(?:FAILED|ERROR) ([^\s[]+)", output, re.MULTILINE)
        return named[1] if named else f"status {status}" * bool(status)

    def measure(self, kept: Path, tests: Sequence[str]) -> None:
        """Run tests once, with coverage that knows which test runs."""
        found = "".join(f"\n    {package}/*" for package in PACKAGES)
        (kept / "settings").write_text(f"{_SETTINGS}{found}\ndata_file = {kept}/lines")
        real = f" or ({of_stage('flux')})" if shutil.which("flux") else ""
        words = [*_PYTEST, "-m", f"({PURE}){real}", f"--junitxml={kept}/costs.xml"]
        words += ["--cov", f"--cov-config={kept}/settings", "--cov-context=test"]
        # Its few tests run nearly each line, and take minutes.
        words += ["--cov-report=", "--ignore=tests/machine/test_machine.py", *tests]
        words += ["-n", str(os.cpu_count() or 1), "--dist=loadfile"]
        status, output = self._run(words, seconds=0)
        if status not in (0, 1):
            raise RuntimeError(f"{output}\npytest: status {status}")


class Covering:
    """Which test functions run a line, and what each costs with all its parameters."""

    def __init__(self, kept: Path) -> None:
        self._costs: dict[str, float] = defaultdict(float)
        self._data = CoverageData(str(kept / "lines"))
        self._data.read()
        for case in ET.parse(kept / "costs.xml").iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name', '').partition('[')[0]}"
            # One that fails when nothing is changed catches nothing.
            failed = {child.tag for child in case} & {"failure", "error"}
            self._costs[name] += float("inf" if failed else case.get("time", 0))

    def _cost(self, test: str) -> float:
        # Junit names it package.module.Class.function.
        dotted = test.replace(".py::", ".").replace("::", ".").replace("/", ".")
        return self._costs[dotted]

    def _running(self, file: str, line: int = 0) -> set[str]:
        """Return the tests that run a line, or any of the file."""
        lines = self._data.contexts_by_lineno(file)
        looked = [lines.get(line, [])] if line else lines.values()
        return {re.split(r"[\[|]", name)[0] for names in looked for name in names}

    def batches(self, mutant: Mutant, budget: float) -> list[list[str]]:
        """Return tests that take `budget` seconds, the nearest and cheapest first."""
        tests = self._running(mutant.file, mutant.line)
        # What runs at the import belongs to all that use the file, or its folder.
        if mutant.imported or "" in tests:
            folder = mutant.file.rpartition("/")[0]
            files = [f for f in self._data.measured_files() if f.startswith(folder)]
            tests = self._running(mutant.file) - {""}
            tests = tests or set().union(*map(self._running, files)) - {""}
        by_file = defaultdict(list)
        for test in sorted(tests, key=lambda test: (self._cost(test), test)):
            by_file[test.partition("::")[0]].append(test)
        path = mutant.file.replace("plugins/burst_", "burst/plugins/")
        mirror = path.replace("burst/", "tests/", 1).split("/")
        named = f"test_{mirror.pop()}"

        def near(name: str) -> tuple[bool, int, float, str]:
            common = sum(map(str.__eq__, mirror, name.split("/")))
            cheapest = self._cost(by_file[name][0])
            return not name.endswith(named), -common, cheapest, name

        batches: tuple[list[str], list[str]] = ([], [])
        for place, name in enumerate(sorted(by_file, key=near)):
            for test in by_file[name]:
                if self._cost(test) <= budget:
                    budget -= self._cost(test)
                    batches[place >= _FIRST].append(test)
        return [batch for batch in batches if batch]
