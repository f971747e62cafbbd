# SPDX-License-Identifier: MIT
"""Pictures by matplotlib: of what policies give, wait against money."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from burst.errors import BurstError
from burst.replay.report import PolicyResult


class PictureError(BurstError):
    """A picture cannot be made: the table is shown without it."""


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
        # Zero, and what costs ten thousand times as much, in one picture.
        least = min((row.money for _, row in rows if row.money), default=1.0)
        axes.set_xscale("symlog", linthresh=least)
        axes.set(xlabel="money", ylabel="mean wait in hours", title=trace)
        axes.set(ylim=(0, None))

    save_picture(path, (6.4, 4.0), plot)


def save_picture(
    path: Path, size: tuple[float, float], plot: Callable[[Any], None]
) -> None:
    """Write what is plotted on axes; `size` is in inches. Raises PictureError."""
    figure = _figure_class()(figsize=size, layout="constrained")
    plot(figure.add_subplot())
    try:
        # Of a name without a suffix matplotlib would make another name.
        figure.savefig(path, format=path.suffix.lower().removeprefix(".") or "(none)")
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
