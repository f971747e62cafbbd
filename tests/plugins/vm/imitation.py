# SPDX-License-Identifier: MIT
"""What tests have of each imitation of a cloud that answers over the wire."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from burst_vm.cloud import VmCloud
from burst_vm.provider import VmProvider
from burst_vm.settings import VmSettings

from burst.config import convert


class Imitation(ABC):
    """One account of a cloud."""

    def __init__(self, path: Path, credentials: str) -> None:
        """`path` is a directory for it; `credentials` the content of that file."""
        self.path = path
        self.credentials = path / "cloud.toml"
        self.credentials.touch(mode=0o600)
        self.credentials.write_text(credentials)
        self.down = self.full = False
        self.cut = ""
        """`before` or `after`: the next VM's request is cut off then."""

    @abstractmethod
    def close(self) -> None:
        """End its server."""

    @abstractmethod
    def vms(self, **tags: str) -> Sequence[Any]:
        """Return the VMs that are not deleted: by `owner`, `burst`, `host`."""

    @abstractmethod
    def powered_off(self, vm: Any) -> None:
        """Have a VM that has powered itself off."""

    @abstractmethod
    def table(self, **changes: Any) -> dict[str, Any]:
        """Return `[providers.NAME]` with keys that work."""

    def cloud(self, settings: VmSettings) -> VmCloud:
        """Return what a provider with these settings calls."""
        return VmCloud(settings)

    def provider(
        self, owner: str, name: str = "vm", settles: float = 2.0, **changes: Any
    ) -> VmProvider:
        settings = convert(VmSettings, self.table(**changes), name)
        cloud = self.cloud(settings)
        return VmProvider(name, settings, owner, cloud=cloud, settles=settles)

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        self.down = True
        yield
        self.down = False
