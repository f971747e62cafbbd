# SPDX-License-Identifier: MIT
"""What a guest's job in a pod tries: to read what is secret, to change what is not its.

Each "control" is what it may do, so that the others are seen to be refused.
"""

from __future__ import annotations

import re

from tests.e2e.programs import ENVIRONMENT
from tests.kind.multi_user_site import MultiUserSite
from tests.support.pod_words import pod_words

_TRIES = """\
try() { what=$1; shift; if "$@" > /dev/null 2>&1; then echo "did: $what"; fi; }
try control-config cat /burst/config/broker.toml
try control-key ls -d /burst/run/key
try control-socket ls /burst/run/broker/local
try control-munge munge -n
try control-flux flux getattr rank
try control-tmp ls /tmp/of-the-owner
try certificate cat /burst/run/key/curve.cert
try keys ls /burst/run/key
try secret sh -c 'cat /burst/secret/*'
try munge-key sh -c 'cat /burst/munge-key/*'
try token sh -c 'cat /var/run/secrets/*/*/token'
try replace-rundir mv /burst/run/broker /burst/run/other
try replace-keys mv /burst/run/key /burst/run/other
try replace-socket rm /burst/run/broker/local
try replace-munge rm /run/munge/munge.socket.2
try write-run touch /burst/run/mine
try write-config touch /burst/config/start
try write-users sh -c 'echo ann:x:0:0::/:/bin/sh >> /etc/passwd'
try take-from-tmp mv /tmp/of-the-owner /tmp/mine
try command-owner flux exec -r 0 true
try read-store flux kvs get resource.R
try signal-broker kill -0 1
try signed-as-another munge -n --uid=61000
for each in /proc/[0-9]*; do
    test "$(stat -c %u $each)" = 61000 || continue
    echo process-of-the-owner
    try environ cat $each/environ
    try memory dd if=$each/mem bs=1 count=1
    try files ls $each/fd
    try root ls $each/root
done
echo "rights: $(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)"
env
"""


def try_what_is_closed(site: MultiUserSite) -> None:
    """Have a guest's job in a pod try to read and change what it must not."""
    system = site.system
    keys = [
        (system.directory / name).read_text() for name in ("munge.key", "kubeconfig")
    ]
    certificate = (system.directory / "cert").read_text()
    (secret,) = re.findall(r'secret-key = "(.*)"', certificate)
    # Its owner's, in a directory that all write to.
    pod = pod_words(ENVIRONMENT)
    touch = {"exec": {"command": ["touch", "/tmp/of-the-owner"]}}
    pod["spec"]["containers"][0]["lifecycle"] = {"postStart": touch}
    site.change(pod=pod)
    with system.daemon() as daemon:
        where = ("-N1", "--cwd=/", "--requires=burst", "--setattr=burstable")
        job = system.flux("ann", "submit", *where, "sh", "-c", _TRIES)
        done = system.wait_for_end("ann", job)
        said = done.stdout.splitlines()
        assert done.returncode == 0, (str(done)[-1500:], daemon.log()[-3000:])
    did = [line for line in said if line.startswith("did: ")]
    controls = ("config", "key", "socket", "munge", "flux", "tmp")
    assert did == [f"did: control-{each}" for each in controls], done.stdout
    assert "process-of-the-owner" in said
    assert "rights: 0000000000000000" in said
    for key in (secret, *keys):
        assert key not in done.stdout
    names = [line.partition("=")[0] for line in said if "=" in line]
    assert [n for n in names if re.search("KEY|SECRET|TOKEN|CERT", n)] == []
