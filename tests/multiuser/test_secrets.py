# SPDX-License-Identifier: MIT
"""What a guest's job on a follower can get at: nothing that is secret.

Each probe runs in a job of a guest's on a lent node, beside the broker that holds the
certificate, and says what it could read.
"""

from __future__ import annotations

import json
import re

import pytest

from tests.multiuser.lab import OWNER
from tests.multiuser.system_instance import SystemInstance

pytestmark = pytest.mark.multiuser

# In the environment of the daemon, as the credentials of a cloud are.
CREDENTIAL = "credential-of-the-daemon-4711"

# Tries all files below the places that it is given, and all processes; prints JSON.
PROBE = """
import json, os, sys
opened, listed, environs, memories = [], [], [], []
for place in sys.argv[1:]:
    if os.path.isfile(place):
        names = [place]
    else:
        names = [os.path.join(at, name) for at, _, found in os.walk(place)
                 for name in found]
        try:
            listed += [f"{place}/{name}" for name in os.listdir(place)]
        except OSError:
            pass
    for name in names:
        try:
            opened.append([name, open(name, "rb").read(65536).decode("latin-1")])
        except OSError:
            pass
for pid in filter(str.isdecimal, os.listdir("/proc")):
    try:
        if os.stat(f"/proc/{pid}").st_uid == os.getuid():
            continue
    except FileNotFoundError:  # it has ended
        continue
    for name, seen in ("environ", environs), ("mem", memories):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                seen.append([pid, file.read(65536).decode("latin-1")])
        except OSError:
            pass
fds = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
       if os.path.exists(f"/proc/self/fd/{fd}")]
print(json.dumps({"uid": os.getuid(), "opened": opened, "listed": listed,
                  "environs": environs, "memories": memories, "fds": fds,
                  "env": dict(os.environ)}))
"""


def test_a_guests_job_reads_no_secret_on_a_follower(system: SystemInstance) -> None:
    made = system.directory
    cert = (made / "cert").read_text()
    secrets = re.findall(r'secret-key = "(.+)"', cert)
    assert len(secrets) == 1
    secrets.append(CREDENTIAL)
    credentials = made / "credentials.json"
    system.lab.run(OWNER, "sh", "-c", f"umask 077; echo {CREDENTIAL} > {credentials}")
    probe = made / "probe.py"
    probe.write_text(PROBE)
    key = "/etc/munge/munge.key"
    places = [made / "cert", credentials, made / "p", made / "state", key]
    environment = {
        "GOOGLE_APPLICATION_CREDENTIALS": str(credentials),
        "AWS_SECRET_ACCESS_KEY": CREDENTIAL,
    }
    with system.daemon(env=environment):
        words = ("--setattr=burstable", "-N1", "-c4", "--requires=burst")
        job = system.flux(
            "ann", "submit", *words, "python", str(probe), *map(str, places)
        )
        done = system.wait_for_end("ann", job)
        assert done.returncode == 0, done.stderr
        (host,) = system.jobs("{nodelist}", job)
        assert host.startswith("burst-")
        found = json.loads(done.stdout)
        as_owner = system.lab.run(OWNER, "python", str(probe), *map(str, places))
    # The probe does find them, where it may.
    assert all(secret in as_owner for secret in secrets)

    assert found["uid"] == 61001
    assert found["opened"] == []
    assert found["listed"] == []
    assert found["environs"] == []
    assert found["memories"] == []
    assert not [fd for fd in found["fds"] if str(made) in fd], found["fds"]
    assert not any(secret in done.stdout for secret in secrets)
    told = [name for name in found["env"] if name.startswith(("BURST_", "AWS", "GOOG"))]
    assert told == []
