# SPDX-License-Identifier: MIT
"""`burst lead init --multi-user`: the lead that it wrote runs guests' jobs."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.multiuser.lab import OWNER, Lab, end_process, flux_etc, imp_path
from tests.multiuser.unit_file import Unit
from tests.support.ports import free_port
from tests.support.waiting import wait_until

pytestmark = pytest.mark.multiuser

WHO = ("sh", "-c", "id -un; flux getattr hostname")
URI = "local:///run/flux/local"


class TypedLead:
    """A lead made and started by what `burst lead init --multi-user` says."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.place = Path(tempfile.mkdtemp(prefix="t-", dir=lab.directory))
        self.place.chmod(0o755)
        self.lead = self.place / "lead"
        self.processes: list[subprocess.Popen[bytes]] = []

    def make(self, *options: str) -> str:
        own = ("--multi-user", "--hosts", "lead-0", "--cores", "2", "--gpus", "0")
        port = ("--port", str(free_port()))
        words = ("lead", "init", str(self.lead), *own, *port, *options)
        return self.lab.run("root", "python", "-m", "burst", *words)

    def settings(self) -> None:
        """Have nothing wait longer than a test would."""
        path = self.lead / "burst.toml"
        text = path.read_text()
        path.write_text(f'{text}\n[daemon]\ncadence = "0.5s"\n')

    def start(self, name: str) -> None:
        """Start a unit as systemd does: its directories, its user, its environment."""
        unit = Unit.read(self.lead / "flux" / name)
        with (self.place / f"{name}.log").open("ab") as log:
            self.processes.append(unit.start(self.lab, log))

    def start_all(self) -> None:
        owner = ("-o", OWNER, "-g", OWNER)
        state = str(self.place / "state")
        self.lab.run("root", "install", "-d", *owner, "-m", "700", state)
        self.start("flux.service")
        wait_until(lambda: not self.flux("ann", "jobs").returncode, self.log)
        self.start("burst.service")
        wait_until(lambda: " serves " in self.log(), self.log)

    def log(self) -> str:
        paths = sorted(self.place.glob("*.log"))
        return "\n".join(path.read_text(errors="replace") for path in paths)

    def flux(self, user: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.lab.try_run(user, "flux", *words, env={"FLUX_URI": URI})

    def doctor(self) -> str:
        words = ("doctor", "-c", f"{self.lead}/burst.toml", "--uri", URI)
        return self.lab.try_run(OWNER, "python", "-m", "burst", *words).stdout

    def end(self) -> None:
        for process in reversed(self.processes):
            end_process(process)


@pytest.fixture(scope="module")
def lead() -> Iterator[TypedLead]:
    """Give one in a lab of its own, whose flux-security is as a package leaves it."""
    with Lab() as lab:
        etc = flux_etc()
        lab.run("root", "rm", "-r", f"{etc}/imp", f"{etc}/security")
        lab.run("root", "chmod", "755", str(imp_path()))
        lead = TypedLead(lab)
        try:
            own = "/etc/systemd/system/flux.service"
            lab.run("root", "mkdir", "-p", "/etc/systemd/system")
            lab.run("root", "sh", "-c", f"echo '# of the site' > {own}")
            for again in ((), ("--force",)):
                lead.make("--statedir", f"{lead.place}/state", "--install", *again)
            kept = lab.run("root", "sh", "-c", f"cd /; tail -n+1 {own}.*")
            assert kept == "# of the site\n"
            lead.settings()
            lead.start_all()
            yield lead
        finally:
            lead.end()


def test_what_it_installs_runs_a_guests_job_on_a_burst(lead: TypedLead) -> None:
    done = lead.flux("ann", "run", "-N2", "-c2", "--setattr=burstable", *WHO)
    words = done.stdout.split()
    assert done.returncode == 0, (done.stderr, lead.log())
    assert words.count("ann") == 2
    assert sum(word.startswith("burst-0-") for word in words) == 2
    assert lead.flux("ann", "cancel", "--all", "--user=bob").returncode == 1
    told = lead.doctor()
    about = [line for line in told.splitlines() if " users " in line]
    assert len(about) == 9, told
    assert all(line.split()[0] == "ok" for line in about), told
    assert "munge answers; this user is flux" in told


# The last: it breaks the lead.
def test_the_doctor_says_what_keeps_guests_jobs_from_running(lead: TypedLead) -> None:
    lab = lead.lab
    imp, settings = str(imp_path()), str(lead.lead / "burst.toml")
    allowed = f"{flux_etc()}/imp/conf.d/imp.toml"
    lab.run("root", "chmod", "u-s", imp)
    lab.run("root", "sed", "-i", 's/"flux"/"other"/', allowed)
    lab.run("root", "chmod", "g+w", allowed)
    lab.run("root", "chown", "bob", str(lead.lead / "burst.cert"))
    lab.run("root", "chmod", "o+w", settings)
    lab.run("root", "chmod", "o-x", "/run/flux")
    lab.kill_munged()
    told = [" ".join(line.split()) for line in lead.doctor().splitlines()]
    advice = [
        (f"wrong users {imp} is owned by uid 0", f"chmod 4755 {imp}"),
        ("wrong users the IMP does not let flux", 'add "flux" to allowed-users'),
        (f"wrong users {allowed} is owned by uid 0", f"chmod go-w {allowed}"),
        ("wrong users munge does not answer", "start munged"),
        (f"wrong users {lead.lead}/burst.cert is owned", "chown flux"),
        ("wrong users other users cannot enter /run/flux", "chmod o+x /run/flux"),
        (f"wrong users {settings} can be changed by users other", "chmod go-w"),
    ]
    for what, todo in advice:
        (number,) = [i for i, line in enumerate(told) if line.startswith(what)]
        assert todo in told[number + 1], told[number : number + 2]
    words = ("lead", "check", str(lead.lead), "--uri", URI)
    checked = lab.try_run(OWNER, "python", "-m", "burst", *words)
    assert checked.returncode == 1
    assert f"chmod 4755 {imp}" in checked.stdout
    lab.run("root", "chmod", "600", allowed)
    told = [" ".join(line.split()) for line in lead.doctor().splitlines()]
    closed = "note users the IMP's configuration is closed to this user"
    assert any(line.startswith(closed) for line in told)
