# SPDX-License-Identifier: MIT
"""A picture of what policies give: wait against money."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burst.errors import BurstError
from burst.replay.report import PolicyResult


class PictureError(BurstError):
    """A picture cannot be made: the table is shown without it."""


def draw(path: Path, trace: str, found: Mapping[str, PolicyResult]) -> None:
    """Write a picture in the format of the file's suffix. Raises PictureError."""
    figure_class = _figure_class()
    figure = figure_class(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    rows = sorted(found.items(), key=lambda item: item[1].money)
    axes.plot(
        [row.money for _, row in rows],
        [row.mean_wait_s / 3600.0 for _, row in rows],
        marker="o",
        linewidth=1,
    )
    for name, row in rows:
        at = (row.money, row.mean_wait_s / 3600.0)
        axes.annotate(name, at, xytext=(4, 4), textcoords="offset points", fontsize=8)
    # Zero, and what costs ten thousand times as much, in one picture.
    least = min((row.money for _, row in rows if row.money), default=1.0)
    axes.set_xscale("symlog", linthresh=least)
    axes.set(xlabel="money", ylabel="mean wait in hours", title=trace, ylim=(0, None))
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise PictureError(
            f"{path}: cannot be written: {error}",
            "name a file that ends in .png, .svg or .pdf, in a directory that is there",
        ) from error


def _figure_class() -> Any:
    try:
        return importlib.import_module("matplotlib.figure").Figure
    except ImportError as error:
        raise PictureError(
            f"no picture without matplotlib: {error}",
            "pip install '.[plot]' in its source, or matplotlib beside it",
        ) from error
