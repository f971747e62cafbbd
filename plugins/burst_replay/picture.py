# SPDX-License-Identifier: MIT
"""The picture of a replay: the mean wait of each policy against its money."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burst.cli.picture import save_picture
from burst_replay.report import PolicyResult


def draw(path: Path, trace: str, found: Mapping[str, PolicyResult]) -> None:
    """Write a picture in the format of the file's suffix. Raises PictureError."""
    rows = sorted(found.items(), key=lambda item: item[1].money)

    def plot(axes: Any) -> None:
        axes.plot(
            [row.money for _, row in rows],
            [row.mean_wait_s / 3600.0 for _, row in rows],
            marker="o",
            linewidth=1,
        )
        for name, row in rows:
            at = (row.money, row.mean_wait_s / 3600.0)
            axes.annotate(
                name, at, xytext=(4, 4), textcoords="offset points", fontsize=8
            )
        # Shows zero and amounts that differ by a factor of ten thousand.
        least = min((row.money for _, row in rows if row.money), default=1.0)
        axes.set_xscale("symlog", linthresh=least)
        axes.set(xlabel="money", ylabel="mean wait in hours", title=trace)
        axes.set(ylim=(0, None))

    save_picture(path, (6.4, 4.0), plot)
