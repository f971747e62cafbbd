# SPDX-License-Identifier: MIT
"""Reads the file of an ensemble with all that a daemon checks before it starts it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from burst.config.ensemble_file import EnsembleFile, load_ensemble
from burst.config.ensemble_supported import check_supported
from burst.runtime.algorithm_registry import Algorithms, load_algorithms


def read_ensemble(
    path: Path, providers: Collection[str]
) -> tuple[EnsembleFile, Algorithms]:
    """Return the ensemble in a file, and its algorithms.

    `providers` are those that members may name. Raises ConfigError with the line.
    """
    file = load_ensemble(path, providers)
    check_supported(file.spec, file)
    return file, load_algorithms(file.spec, file)
