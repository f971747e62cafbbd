# SPDX-License-Identifier: MIT
"""Finds Flux's Python bindings, wherever Flux was installed.

They are not on PyPI: they come with Flux, for its Python, outside of any virtual
environment. So they are imported from sys.path first, and then from the directory that
the `flux` on PATH names.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from burst.errors import LeadError
from burst.model.version import major_minor

OLDEST = (0, 84)
"""The oldest Flux that is supported and tested: MAJOR.MINOR."""

VIEW = "/mnt/flux/view/bin"
"""Where the Flux Operator puts a Flux that several containers of a pod share. A Flux
that is shared at another place has to be on PATH."""

_CORE = "_flux._core"
_ASK = "import os, _flux; print(os.path.dirname(os.path.abspath(_flux.__file__)))"
_INSTALLED = "lib/flux/python{}.{}/_flux".format(*sys.version_info)
"""Where the bindings are in Flux's prefix. Asking Flux would start another Python."""
_ASK_DEADLINE_S = 60.0


def import_core() -> ModuleType:
    """Return the cffi module `_flux._core`, with its `ffi` and `lib`.

    Raises LeadError that says all that was tried, and what to do.
    """
    tried: list[str] = []
    try:
        return importlib.import_module(_CORE)
    except ImportError as error:
        tried.append(f"import {_CORE}: {error}")
    directory = _ask_flux(tried)
    if directory is not None:
        try:
            return _import_from(directory)
        except (ImportError, OSError) as error:
            tried.append(f"{_CORE} from {directory}: {error}")
    raise LeadError(
        "Flux's Python bindings cannot be imported; tried " + "; ".join(tried),
        _advice(tried),
    )


def find_program(view: str = VIEW) -> str:
    """Return the path of `flux`: that on PATH, or the pod's; empty if there is none."""
    # Most commands find the bindings without this import, and start sooner.
    import shutil  # noqa: PLC0415

    return shutil.which("flux") or shutil.which("flux", path=view) or ""


def check_version(broker: str, library: str) -> None:
    """Raise LeadError if the versions of broker and library do not fit."""
    if _numbers(broker) < OLDEST:
        raise LeadError(
            f"the broker is Flux {broker}; this needs {OLDEST[0]}.{OLDEST[1]} or later",
            "update flux-core on the lead and on its followers",
        )
    if _numbers(broker) != _numbers(library):
        raise LeadError(
            f"the broker is Flux {broker}, the Python bindings found are of {library}",
            "put the flux of that broker first on PATH",
        )


def _numbers(version: str) -> tuple[int, int]:
    try:
        return major_minor(version)
    except ValueError as error:
        raise LeadError(str(error)) from None


def _ask_flux(tried: list[str]) -> Path | None:
    flux = find_program()
    if not flux:
        tried.append("no flux on PATH")
        return None
    installed = Path(flux).resolve().parents[1] / _INSTALLED
    if installed.is_dir():
        return installed
    import subprocess  # noqa: PLC0415 - see find_program

    try:
        answer = subprocess.run(
            [flux, "python", "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=_ASK_DEADLINE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or ""
        tried.append(f"{flux} python -c 'import _flux': {error} {said}".strip())
        return None
    return Path(answer.stdout.strip())


def _import_from(package: Path) -> ModuleType:
    """Import the bindings from their directory, and no other package beside them.

    The directory above may be the system's dist-packages: on sys.path, its packages
    would be imported in place of those of the virtual environment.
    """
    for name in [name for name in sys.modules if name.split(".")[0] == "_flux"]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        "_flux", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{package} holds no package")
    module = importlib.util.module_from_spec(spec)
    sys.modules["_flux"] = module
    try:
        spec.loader.exec_module(module)
        return importlib.import_module(_CORE)
    except (ImportError, OSError):
        del sys.modules["_flux"]
        raise


def _advice(tried: list[str]) -> str:
    if any("_cffi_backend" in attempt for attempt in tried):
        return (
            "pip install 'flux-burst-orchestrator[flux]' brings cffi, which they need"
        )
    if "no flux on PATH" in tried:
        return "install flux-core 0.84 or later, or put the directory of flux on PATH"
    return "check that `flux python -c 'import flux'` works as this user"
