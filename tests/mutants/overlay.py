# SPDX-License-Identifier: MIT
"""A copy of a tree with a Python of its own, in which all that runs imports the copy.

The checkout is never changed. PYTHONPATH would not do: there are tests that set it for
processes which they start. So the copy has a virtual environment, whose packages are
those of this one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_FIND = "import burst; print(burst.__file__)"


def tracked(tree: Path) -> list[Path]:
    """Return the files of a tree, without what git ignores."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, cwd=tree, check=True, capture_output=True, text=True)
    files = [tree / name for name in done.stdout.split("\0") if name]
    return sorted(path for path in files if path.is_file())


class Overlay:
    """The copy, below a directory that the caller removes."""

    def __init__(self, tree: Path, root: Path) -> None:
        self.root = root
        for path in tracked(tree):
            target = root / path.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)
        self._make_python(root / ".venv")
        # Without what would have the copy measured as the tests are that use this.
        around = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")}
        self.environment = {**around, "PYTHONHASHSEED": "0"}
        self.environment["PATH"] = f"{root}/.venv/bin:{os.environ['PATH']}"
        self.environment.pop("PYTHONPATH", None)
        found = subprocess.check_output(
            [self.python, "-c", _FIND], cwd="/", env=self.environment, text=True
        )
        if not found.startswith(str(root)):
            raise RuntimeError(f"imports {found.strip()}, not the copy in {root}")
        self._changes = 0
        self._server: subprocess.Popen[str] | None = None

    def _make_python(self, home: Path) -> None:
        venv.EnvBuilder(symlinks=True).create(home)
        self.python = str(home / "bin" / "python")
        packages = home / "lib" / f"python{sysconfig.get_python_version()}"
        theirs = sysconfig.get_path("purelib")
        lines = [str(self.root), str(self.root / "plugins")]
        lines.append(f"import site; site.addsitedir({theirs!r})")
        (packages / "site-packages" / "copy.pth").write_text("\n".join([*lines, ""]))
        for program in Path(sys.executable).parent.iterdir():
            text = program.read_bytes()
            if text.startswith(f"#!{sys.executable}".encode()):
                ours = text.replace(sys.executable.encode(), self.python.encode(), 1)
                (home / "bin" / program.name).write_bytes(ours)
                (home / "bin" / program.name).chmod(0o755)

    def run(self, job: Mapping[str, Any], file: str = "", text: str = "") -> Any:
        """Run tests by `forks.py` with one file changed; return what it answers."""
        if self._server is None:
            self._server = subprocess.Popen(
                [self.python, str(Path(__file__).with_name("forks.py"))],
                cwd=self.root,
                env=self.environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert self._server.stdin
        assert self._server.stdout
        before = (self.root / file).read_text() if file else ""
        self._write(file, text)
        try:
            self._server.stdin.write(json.dumps(job) + "\n")
            self._server.stdin.flush()
            return json.loads(self._server.stdout.readline())
        finally:
            self._write(file, before)

    def _write(self, file: str, text: str) -> None:
        if file:
            (self.root / file).write_text(text)
            # What is compiled is for a source of this size and second: two mutants
            # that are written within one would be taken for each other.
            self._changes += 10
            os.utime(self.root / file, (self._changes, self._changes))

    def close(self) -> None:
        """End the process that runs the tests."""
        if self._server is not None:
            self._server.communicate()


def run_pytest(overlay: Overlay, words: Sequence[str], env: Mapping[str, str]) -> int:
    """Run pytest in the copy, with this added to the environment."""
    words = [overlay.python, "-m", "pytest", *words]
    env = {**overlay.environment, **env}
    done = subprocess.run(words, cwd=overlay.root, env=env, check=False, stdout=2)
    return done.returncode
