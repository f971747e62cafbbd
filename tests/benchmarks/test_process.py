# SPDX-License-Identifier: MIT
"""What a process uses is read as proc(5) has it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.process import cpu_seconds, memory_mb

_STAT = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 9 9 20 0 1 0 5 1 1"
_SMAPS = """\
55d0c0000000-7ffd0000000 ---p 00000000 00:00 0    [rollup]
Rss:               50000 kB
Pss:               30000 kB
Pss_Anon:          20000 kB
Private_Clean:      1000 kB
Private_Dirty:     24000 kB
"""


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(_STAT)
    (tmp_path / "7" / "smaps_rollup").write_text(_SMAPS)
    return tmp_path


def test_cpu_is_that_of_user_and_kernel_whatever_the_name(proc: Path) -> None:
    assert cpu_seconds(7, proc) == 200 / os.sysconf("SC_CLK_TCK")


def test_memory_is_in_megabytes(proc: Path) -> None:
    assert memory_mb(7, proc) == {"rss": 51.2, "pss": 30.72, "uss": 25.6}
