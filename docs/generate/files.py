# SPDX-License-Identifier: MIT
"""The files of the repository that are made from the code."""

from __future__ import annotations

from pathlib import Path

from docs.generate.ensemble_page import ensemble_page
from docs.generate.man_pages import man_pages
from docs.generate.metrics_page import metrics_page
from docs.generate.settings_page import settings_page

TOP = Path(__file__).parents[2]


def generated_files() -> dict[str, str]:
    """Return the text of each, by its path from the top of the repository."""
    pages = {f"man/man1/{name}": text for name, text in man_pages().items()}
    return {
        "docs/settings.md": settings_page(),
        "docs/ensemble-options.md": ensemble_page(),
        "docs/metrics.md": metrics_page(),
        **pages,
    }
