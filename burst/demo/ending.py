# SPDX-License-Identifier: MIT
"""The report at the end: what each job printed, and each burst's seconds."""

from __future__ import annotations

import textwrap
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from burst.core.timeline import STAGES
from burst.demo.record import Act, Record
from burst.demo.scene import Row
from burst.model.jobid import format_f58

# A table with a column for each stage is so wide; a narrower terminal gets sentences.
_TABLE_WIDTH = 92


def report(record: Record, svg: Path, console: Console) -> None:
    """Print what came of it: jobs, bursts, and what is left."""
    parts: list[RenderableType] = []
    if record.acts:
        parts += [_jobs(record.acts), Text()]
    if record.bursts:
        wide = console.width >= _TABLE_WIDTH
        stages = (
            _stages(record.bursts) if wide else _sentences(record.bursts, console.width)
        )
        parts += [stages, Text()]
    left = record.left
    parts.append(
        Text(
            f"left: {left.followers} followers, {left.slots} slots leased,"
            f" {left.files} files"
        )
    )
    console.print(Group(*parts))
    console.print(f"picture: {svg}", soft_wrap=True, markup=False)


def _jobs(acts: tuple[Act, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("JOB", "NODES", "STATE", "OUTPUT"):
        table.add_column(title)
    for act in acts:
        said = " ".join(sorted(act.output.split()))
        table.add_row(
            format_f58(act.job.id),
            str(act.part.nodes),
            act.job.state,
            Text(said or (act.job.why and f"none; it was told: {act.job.why}")),
        )
    return table


def _stages(bursts: tuple[Row, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("SECONDS TO", no_wrap=True)
    for stage in STAGES:
        table.add_column(stage, justify="right", no_wrap=True)
    for burst in bursts:
        reached = burst["timeline"]
        cells = (f"{reached[s]:.3f}" if s in reached else "-" for s in STAGES)
        table.add_row(burst["id"], *cells)
    return table


def _sentences(bursts: tuple[Row, ...], width: int) -> Group:
    """Return a sentence for each burst, broken only between stages."""
    lines = []
    for burst in bursts:
        stages = (f"{stage}\u00a0{at:.3f}" for stage, at in burst["timeline"].items())
        line = f"{burst['id']}: {', '.join(stages)}\u00a0s"
        lines.append(Text(textwrap.fill(line, width - 1, subsequent_indent="  ")))
    return Group(*lines)
