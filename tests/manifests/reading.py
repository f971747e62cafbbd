# SPDX-License-Identifier: MIT
"""The files of manifests/."""

from pathlib import Path
from typing import Any

import yaml

MANIFESTS = Path(__file__).parents[2] / "manifests"


def documents(*parts: str) -> list[dict[str, Any]]:
    """Return the objects of these files."""
    texts = ((MANIFESTS / part).read_text() for part in parts)
    return [thing for text in texts for thing in yaml.safe_load_all(text)]
