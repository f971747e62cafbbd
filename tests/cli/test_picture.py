# SPDX-License-Identifier: MIT
"""Wait against money."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from burst_replay.command import draw
from burst_replay.report import PolicyResult

NONE = PolicyResult(
    mean_wait_s=7200.0,
    p95_wait_s=9000.0,
    own_node_hours=5.0,
    bought_node_hours=0.0,
    bought_share=0.0,
    money=0.0,
    bursts=0,
    refused=0,
    work=0.0,
    idle=0.0,
    boot=0.0,
    teardown=0.0,
)


def test_a_picture_names_trace_and_policies(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    draw(path, "mine.swf", {"never": NONE})
    text = path.read_text()
    assert "<!-- mine.swf -->" in text
    assert "<!-- never -->" in text


def test_without_matplotlib_it_says_how_to_install_it() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from pathlib import Path\n"
        "from burst_replay.command import draw\n"
        "draw(Path('a.png'), 'x', {})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "pip install 'flux-burst-orchestrator[plot]'" in done.stderr
