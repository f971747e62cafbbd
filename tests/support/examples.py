# SPDX-License-Identifier: MIT
"""The providers and algorithms of `examples/`, which are not installed here."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load_example(directory: str, name: str = "") -> ModuleType:
    """Import the module `burst_NAME` from `examples/DIRECTORY`, which is NAME, too."""
    name = f"burst_{name or directory}"
    path = _EXAMPLES / directory / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Before it runs, as msgspec resolves annotations by the name of the module.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
