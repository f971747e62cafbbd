# SPDX-License-Identifier: MIT
"""The files of a site that is adopted, and taken back from burst."""

import json
from pathlib import Path

from burst.lead_setup.adopt_lead import AdoptRequest, adopt_lead
from burst.lead_setup.lead_plan import PlannedSlot, parse_slot
from burst.lead_setup.system_units import SystemPlaces
from burst.lead_setup.unadopt_lead import UndoPlan, apply_unadopt, plan_unadopt
from burst.model.shape import Shape

BOOTSTRAP = """\
# Of the site.
[bootstrap]
curve_cert = "/etc/flux/system/curve.cert"
default_port = 8050
hosts = [{ host = "test[1-3]" }]
"""
R = {
    "version": 1,
    "execution": {
        "R_lite": [{"rank": "0-2", "children": {"core": "0-3"}}],
        "starttime": 0.0,
        "expiration": 0.0,
        "nodelist": ["test[1-3]"],
    },
}
ENTRIES = """\
[[resource.config]]   # two racks
hosts = "test[1-3]"
cores = "0-3"

[[resource.config]]
hosts = "test[1,2],"
properties = ["batch"]
"""
SLOT = parse_slot("burst-0-[0-3]:8", Shape(1))


class Site:
    """The files of a site, one of which is no byte more than it has to be."""

    def __init__(self, directory: Path, *, entries: bool) -> None:
        self.directory = directory
        self.config = directory / "flux/system/conf.d"
        self.units, self.setup = directory / "units", directory / "flux/burst"
        for place in (self.config, self.units, directory / "burst"):
            place.mkdir(parents=True)
        self.hosts = self.config / "net.toml"
        self.hosts.write_text(BOOTSTRAP)
        path = f'[resource]\npath = "{directory}/R"\n'
        (self.config / "resource.toml").write_text(ENTRIES if entries else path)
        self.resources = self.config / "resource.toml" if entries else directory / "R"
        (directory / "R").write_text(json.dumps(R))
        # Of the site, and no copy of ours.
        (self.config / "net.toml.old").write_text("older")
        self.hosts.chmod(0o640)
        self.settings = directory / "burst/burst.toml"
        self.before = self.files()

    def install_flux(self) -> Path:
        """Make a Flux that looks for its files here; return the command's directory."""
        flux = self.directory / "bin/flux"
        flux.parent.mkdir()
        version = "echo commands: 0.88.0; echo libflux-core: 0.88.0"
        where = f"version) {version} ;; *) echo {self.directory}/flux ;;"
        flux.write_text(f'#!/bin/sh\ncase "$*" in {where} esac\n')
        flux.chmod(0o755)
        return flux.parent

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Return what is there, with its mode."""
        found = (path for path in self.directory.rglob("*") if path.is_file())
        return {
            str(path): (path.read_bytes(), path.stat().st_mode & 0o777)
            for path in found
        }

    def adopt(self, run: Path = Path("/run/flux"), slot: PlannedSlot = SLOT) -> None:
        asked = AdoptRequest(
            config=self.config,
            settings=self.settings,
            slots=(slot,),
            provider="local",
            mode="queue",
            places=SystemPlaces(user="flux", group="flux", run=run),
        )
        adopt_lead(asked)

    def plan(self) -> UndoPlan:
        return plan_unadopt(self.config, self.setup, self.units)

    def unadopt(self) -> None:
        apply_unadopt(self.plan())
