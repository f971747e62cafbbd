# SPDX-License-Identifier: MIT
"""Guests' jobs in pods of an image, as a site's, where Kubernetes enforces baseline."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kind.guest_tries import try_what_is_closed
from tests.kind.kindnear import LONG_S, NearCluster
from tests.kind.multi_user_site import MultiUserSite, serving
from tests.kubelab.kind import hostimage
from tests.multiuser.lab import GUESTS, UIDS, Lab, flux_etc, imp_path
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.kind,
    pytest.mark.multiuser,
    pytest.mark.xdist_group("near"),
]
IMAGE = "local.test/multi-user:1"
NAMESPACE = "guests"
WHO = ("sh", "-c", "id -un; id -u; ls -d /burst/config; hostname; sleep 30")


def change() -> str:
    """Return what root changes in the image: a site's would have it so.

    Pods bring flux-security's configuration, as the settings say, and need no other.
    """
    return f"""\
chown root:root {imp_path()}; chmod 4755 {imp_path()}
rm -rf {flux_etc()}/imp {flux_etc()}/security
chmod a+x /root
"""


@pytest.fixture(scope="module")
def site(near: NearCluster) -> Iterator[MultiUserSite]:
    """Give one whose pods are in a namespace that enforces baseline."""
    hostimage.make(IMAGE, ("munged", "munge", "unmunge"), change())
    near.load(IMAGE)
    near.kubectl("create", "namespace", NAMESPACE)
    label = "pod-security.kubernetes.io/enforce=baseline"
    near.kubectl("label", "namespace", NAMESPACE, label)
    pods = {"namespace": NAMESPACE, "image": IMAGE}
    with Lab() as lab, serving(MultiUserSite(lab, near, pods)) as site:
        yield site


def names(near: NearCluster) -> list[str]:
    """Return the host names of the pods that there are."""
    form = "jsonpath={.items[*].spec.hostname}"
    return near.kubectl("get", "pods", "-n", NAMESPACE, "-o", form).split()


def test_jobs_of_guests_run_as_themselves_and_the_doctor_tells_that_they_could(
    near: NearCluster, site: MultiUserSite
) -> None:
    system = site.system
    with system.daemon() as daemon:
        where = ("-N1", "-c4", "--cwd=/", "--requires=burst", "--setattr=burstable")
        jobs = {guest: system.flux(guest, "submit", *where, *WHO) for guest in GUESTS}
        there: set[str] = set()

        def all_seen() -> bool:
            there.update(names(near))
            return len(there) == len(GUESTS)

        # The pod of the first may go before that of the last is made.
        wait_until(all_seen, daemon.log, LONG_S)
        for guest, job in jobs.items():
            done = system.wait_for_end(guest, job)
            assert done.returncode == 0, (str(done)[-1500:], daemon.log()[-3000:])
            name, uid, config, host = done.stdout.split()
            assert (name, uid, config) == (guest, str(UIDS[guest]), "/burst/config")
            assert host in there
        wait_until(
            lambda: all(b["state"] == "inactive" for b in system.bursts()),
            lambda: str(system.bursts()),
        )
    wait_until(lambda: names(near) == [], "its pods to go", LONG_S)
    said = site.doctor("ann")
    assert "ann is user 61001 there, as on this host" in said
    assert "flux-imp is setuid there, and starts signed jobs" in said
    assert "a credential of this host's munge is accepted there" in said


def test_a_guests_job_reads_no_secret(site: MultiUserSite) -> None:
    try_what_is_closed(site)
