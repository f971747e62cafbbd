# SPDX-License-Identifier: MIT
"""A cloud that runs in a box: moto's EC2, and what it knows of its VMs as files.

`python -m tests.site.cloud_in_box DIR`, until it is killed. The test does what a
hypervisor does:

    DIR/table.json           `[providers.NAME]` of type vm for this cloud
    DIR/vms/ID/user-data     of a VM that was asked for
    DIR/vms/ID/off           the test made it: that VM has powered itself off
    DIR/vms/ID/gone          it was terminated
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from burst.kits.atomic_file import write_atomically
from tests.plugins.vm.hypervisor import text_of
from tests.plugins.vm.moto_cloud import MotoCloud

_PAUSE_S = 0.1


def main(place: Path) -> None:
    """Serve for ever."""
    cloud = MotoCloud(place)
    (place / "vms").mkdir()
    write_atomically(place / "table.json", json.dumps(cloud.table()).encode())
    while True:
        live = {vm.id: vm for vm in cloud.vms()}
        for name, vm in live.items():
            _show(place / "vms" / name, vm)
        for known in (place / "vms").iterdir():
            if known.name not in live:
                (known / "gone").touch()
        time.sleep(_PAUSE_S)


def _show(place: Path, vm: Any) -> None:
    place.mkdir(exist_ok=True)
    if not (place / "user-data").exists():
        write_atomically(place / "user-data", text_of(vm).encode())
    if (place / "off").exists():
        vm.terminate()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
