# SPDX-License-Identifier: MIT
"""examples/files/run-with-files leaves nothing, whenever signals come.

What it does on real nodes is in tests/flux/test_files_example.py.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.waiting import HANG_S

EXAMPLE = Path(__file__).parents[2] / "examples" / "files" / "run-with-files"
# In the place of flux. A signal goes to all processes, as that of Ctrl-C.
FLUX = """\
#!/bin/sh
[ "$1" != "$SIGNALED" ] || kill -TERM 0
case $1 in
submit) echo f1 ;;
job) exec sleep 600 ;;
esac
case "$1 $2" in
"archive remove") kill -TERM 0; echo archive >> "$REMOVED" ;;
"cancel f1") echo job >> "$REMOVED" ;;
esac
"""


@pytest.mark.parametrize("signaled", ["submit", "job"])
def test_signals_to_all_leave_no_job_and_no_archive(
    tmp_path: Path, signaled: str
) -> None:
    """The first comes while the job is submitted or runs, others meanwhile."""
    (tmp_path / "flux").write_text(FLUX)
    (tmp_path / "flux").chmod(0o755)
    removed = tmp_path / "removed"
    own = {"SIGNALED": signaled, "REMOVED": str(removed)}
    path = f"{tmp_path}:{os.environ['PATH']}"
    with subprocess.Popen(
        [EXAMPLE, "input", "output", "2", "true"],
        cwd=tmp_path,
        env={**os.environ, **own, "PATH": path},
        start_new_session=True,
    ) as process:
        assert process.wait(HANG_S) == 130
    # Of the input, and of what each of two tasks gives back.
    assert removed.read_text().split() == ["job", *["archive"] * 3]
