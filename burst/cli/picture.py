# SPDX-License-Identifier: MIT
"""Pictures by matplotlib."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from burst.errors import BurstError


class PictureError(BurstError):
    """A picture cannot be made: the table is shown without it."""


def save_picture(
    path: Path, size: tuple[float, float], plot: Callable[[Any], None]
) -> None:
    """Write what `plot` draws on axes; `size` is in inches. Raises PictureError."""
    figure = _figure_class()(figsize=size, layout="constrained")
    plot(figure.add_subplot())
    try:
        # matplotlib would add a suffix to a name without one.
        figure.savefig(path, format=path.suffix.lower().removeprefix(".") or "(none)")
    except (OSError, ValueError) as error:
        raise PictureError(
            f"{path}: cannot be written: {error}",
            "name a file that ends in .png, .svg or .pdf, in a directory that exists",
        ) from error


def _figure_class() -> Any:
    try:
        return importlib.import_module("matplotlib.figure").Figure
    except ImportError as error:
        raise PictureError(
            f"a picture needs matplotlib: {error}",
            "pip install 'flux-burst-orchestrator[plot]'",
        ) from error
