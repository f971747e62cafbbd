# SPDX-License-Identifier: MIT
"""The pod that tries the way to the lead: its script, its object, its answers."""

import shutil
import socket
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from burst.config import Seconds
from burst.errors import Refused, Transient
from burst.kits.kube.kinds import Manifest
from burst.kits.pods import PodSettings
from burst.kits.pods.diagnose.probe import Probe, ProbeTiming
from burst.kits.pods.diagnose.probe_job import (
    ProbeResult,
    judge,
    read_result,
    render_probe,
    result_of,
)
from burst.kits.pods.names import HOSTS, ID, INDEX, OWNER, PROVIDER
from burst.kits.pods.status.kept_object import kept
from burst.model.finding import Finding, Level
from burst.model.lead import LeadIdentity
from burst.testing import example_lead
from tests.kits.kubeserver import ABSENT, Said, cluster_of
from tests.kits.pods import SETTINGS, TAGS, replace
from tests.support.commands import run_captured
from tests.support.pod_words import pod_words
from tests.support.set_clock import SetClock
from tests.support.waiting import HANG_S

CONTAINERS = [{"name": "istio-proxy"}, {"name": "probe", "image": "flux:0.88.0"}]
ENDPOINT = "tcp://192.0.2.7:30093"
CORE = "/api/v1/namespaces/jobs"
JOBS = "/apis/batch/v1/namespaces/jobs/jobs"


@pytest.fixture
def lead(tmp_path: Path) -> LeadIdentity:
    return example_lead(tmp_path, endpoint=ENDPOINT)


def render(lead: LeadIdentity, **changes: Any) -> Any:
    settings: PodSettings = replace(SETTINGS, **changes)
    return render_probe("burst-probe-1", lead, settings, TAGS)


def pod_of(job: Any) -> Any:
    return job["spec"]["template"]["spec"]


def test_it_is_as_followers_are_and_ends_by_itself(lead: LeadIdentity) -> None:
    job = render(
        lead,
        host_paths=("/opt/flux",),
        pod=pod_words(
            env={"A": "1"},
            nodeSelector={"pool": "x"},
            serviceAccountName="quiet",
            imagePullSecrets=[{"name": "key"}],
        ),
    )
    spec = job["spec"]
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (360, 60)
    assert (spec["backoffLimit"], spec["completions"]) == (0, 1)
    pod = pod_of(job)
    assert pod["nodeSelector"] == {"pool": "x"}
    assert pod["securityContext"]["runAsUser"] == 1000
    assert pod["serviceAccountName"] == "quiet"
    assert pod["automountServiceAccountToken"] is False
    assert pod["imagePullSecrets"] == [{"name": "key"}]
    assert pod["volumes"] == [{"name": "host-0", "hostPath": {"path": "/opt/flux"}}]
    (container,) = pod["containers"]
    assert container["image"] == "flux:0.88.0"
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert container["args"] == ["192.0.2.7", "30093", "flux", "python"]


def test_it_bears_our_labels_so_that_gc_finds_it_and_those_of_a_policy(
    lead: LeadIdentity,
) -> None:
    labels = {OWNER: "owner", PROVIDER: "far", ID: "burst-probe-1"}
    job = render(lead)
    for thing in (job, job["spec"]["template"]):
        assert thing["metadata"]["labels"] == labels
        assert thing["metadata"]["annotations"] == {HOSTS: "probe"}
    job = render(lead, object_labels={"app": "flux", "account": "{bank}"})
    demanded = {"app": "flux", "account": "none"}
    for thing in (job, job["spec"]["template"]):
        assert thing["metadata"]["labels"] == {**labels, **demanded}


def test_it_has_a_deadline_and_a_limit(lead: LeadIdentity) -> None:
    job = render(lead, schedule=Seconds(float("inf")))
    assert job["spec"]["activeDeadlineSeconds"] == 660
    (container,) = pod_of(job)["containers"]
    assert container["resources"]["limits"] == {"memory": "256Mi"}


def test_under_the_operator_it_runs_as_whom_the_image_says(lead: LeadIdentity) -> None:
    assert "securityContext" not in pod_of(render(lead, form="operator", user=None))
    assert "securityContext" in pod_of(render(lead, form="operator", user=7))


def test_without_an_address_there_is_nothing_to_try(lead: LeadIdentity) -> None:
    with pytest.raises(Refused, match="address that followers connect to is not known"):
        render(replace(lead, endpoint=""))


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH with what the script needs of any image, and no more."""
    place = tmp_path / "bin"
    place.mkdir()
    (place / "sleep").symlink_to(shutil.which("true") or "")
    return place


def run_script(lead: LeadIdentity, path: Path, endpoint: str) -> ProbeResult:
    """Run the container's command with only this PATH."""
    told = replace(lead, follower_module="m", endpoint=endpoint)
    (container,) = pod_of(render(told))["containers"]
    done = run_captured(
        [*container["command"], *container["args"]],
        env={"PATH": str(path)},
        timeout=HANG_S,
    )
    return read_result(done.returncode, done.stdout)


def test_its_script_tells_apart_what_is_in_the_way(
    lead: LeadIdentity, bare: Path
) -> None:
    """By Python; that bash does as well, `tests/kits/test_tcp.py` has."""
    (bare / "python3").symlink_to(sys.executable)
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        assert judge(run_script(lead, bare, endpoint), endpoint).level is Level.OK
    refused = judge(run_script(lead, bare, endpoint), endpoint)
    assert refused.what.endswith(f"{endpoint}: nothing listens there")
    nowhere = "tcp://lead.invalid:8050"
    unresolved = judge(run_script(lead, bare, nowhere), nowhere)
    assert "its name cannot be resolved there" in unresolved.what


def test_what_nobody_knows_is_told_as_it_is() -> None:
    """All else that it says of the way, `tests/kits/test_tcp.py` has."""
    found = judge(read_result(1, "something\nelse"), ENDPOINT)
    assert found.what == f"a pod there does not reach {ENDPOINT}: something else"
    assert found.advice == "check that the image runs on those nodes"


def test_only_an_end_is_an_end() -> None:
    spec: Manifest = {"containers": CONTAINERS}
    pod: Manifest = {"kind": "Pod", "metadata": {}, "spec": spec}
    assert result_of(kept({**pod, "status": {"phase": "Pending"}})) is None
    assert result_of(kept({**pod, "status": container()})) is None


class Time(SetClock):
    """A clock that goes on only when somebody waits."""

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def server(server: Said) -> Said:
    server.serve_nothing()
    return server


class Trial:
    """One probe at a server that says what a test tells it to."""

    def __init__(self, server: Said, lead: LeadIdentity, **changes: Any) -> None:
        settings = replace(SETTINGS, **changes)
        self.time = Time()
        timing = ProbeTiming(clock=self.time, pause=self.time.wait)
        self.probe = Probe(cluster_of(server), settings, TAGS, timing)
        self.id = self.probe.id
        self.told: list[str] = []
        self._server = server
        self._lead = lead
        server.answer("PATCH", f"{JOBS}/{self.id}", (201, {}))
        server.answer("GET", f"{JOBS}/{self.id}", ABSENT)
        for kind in ("configmaps", "secrets", "services"):
            server.answer("GET", f"{CORE}/{kind}/{self.id}", ABSENT)
        server.answer("DELETE", f"{JOBS}/{self.id}", (200, {}))

    def shows(self, *looks: dict[str, Any] | None) -> None:
        """Show the pod with one status after the other, then nothing at all."""
        meta = self._meta()
        jobs = [(200, {"items": [{"metadata": meta}]}) for _ in looks]
        self._server.answer("GET", JOBS, *jobs, *jobs[:1], (200, {"items": []}))
        pods = [(200, {"items": [] if s is None else [self._pod(s)]}) for s in looks]
        self._server.answer("GET", f"{CORE}/pods", *pods, (200, {"items": []}))

    def run(self) -> Finding:
        (found,) = self.find()
        return found

    def find(self) -> Sequence[Finding]:
        return self.probe.run(self._lead, self.told.append)

    def deletes(self) -> int:
        return sum(method == "DELETE" for method, _, _ in self._server.asked)

    def _meta(self) -> dict[str, Any]:
        labels = {OWNER: "owner", PROVIDER: "far", ID: self.id}
        meta = {"name": self.id, "namespace": "jobs", "uid": "u"}
        return {**meta, "labels": labels, "annotations": {HOSTS: "probe"}}

    def _pod(self, status: dict[str, Any]) -> dict[str, Any]:
        meta = self._meta()
        meta["labels"][INDEX] = "0"
        spec = {"nodeName": "n", "containers": CONTAINERS}
        return {"metadata": meta, "spec": spec, "status": status}


def container(**state: Any) -> dict[str, Any]:
    sidecar = {"name": "istio-proxy", "state": {"running": {}}}
    return {"containerStatuses": [sidecar, {"name": "probe", "state": state}]}


RUNNING = {"phase": "Running", **container(running={})}


def ended(status: int, message: str = "") -> dict[str, Any]:
    return container(terminated={"exitCode": status, "message": message})


def test_it_waits_says_for_what_and_cleans_up(server: Said, lead: LeadIdentity) -> None:
    trial = Trial(server, lead)
    pending = {"phase": "Pending", **container(waiting={"reason": "ContainerCreating"})}
    trial.shows(None, pending, pending, RUNNING, ended(0))
    assert trial.run().what == f"a pod there reaches {ENDPOINT}"
    begins, tries = "probe is being started", "tries to reach the lead"
    words = "probe has no pod yet", begins, tries, "is removed"
    assert trial.told == [f"{trial.id}: {each}" for each in words]
    assert trial.deletes() == 1


FACTS = """\
burst-machine: sparc64
burst-user: 1000 flux
burst-flux: /usr/bin/flux
burst-version: commands: 0.87.1 libflux-core: 0.87.1 build-options: +zmq==4.3.4
"""


def test_what_it_found_where_it_ran_is_told_too(
    server: Said, lead: LeadIdentity
) -> None:
    trial = Trial(server, lead)
    trial.shows(ended(1, f"{FACTS}connect: Connection refused"))
    way, machine, user, flux = trial.find()
    assert way.what.endswith(f"{ENDPOINT}: nothing listens there")
    assert machine.what.startswith("followers there run on sparc64, and the lead runs")
    assert user.what == "followers there run as user 1000 (flux)"
    assert flux.level is Level.WRONG
    assert "Flux 0.87.1, which a lead of 0.88.0 rejects" in flux.what


def test_with_a_view_its_own_image_is_asked_for_flux(
    server: Said, lead: LeadIdentity
) -> None:
    view = {"form": "operator", "view": "flux-view:1"}
    pod = pod_of(render(lead, **view))
    (init,), (main,) = pod["initContainers"], pod["containers"]
    assert (init["name"], init["image"]) == ("probe-view", "flux-view:1")
    assert "keygen" in init["command"][2]
    assert "keygen" not in main["command"][2]
    assert "initContainers" not in pod_of(render(lead))
    trial = Trial(server, lead, **view)
    status = ended(0, "burst-machine: \nburst-user: 7\n")
    told = {"terminated": {"exitCode": 0, "message": "burst-flux: \n"}}
    status["initContainerStatuses"] = [{"name": "probe-view", "state": told}]
    trial.shows(status)
    way, user, flux = trial.find()
    assert way.level is Level.OK
    assert "user 7, who has no name in /etc/passwd" in user.what
    assert flux.what == "there is no Flux in the view of the followers"


OTHER_KIND = "it was built for another kind of machine than the nodes"
NO_IMAGE = {"reason": "ImagePullBackOff", "message": "no such image"}
NOT_PULLED = "image flux:0.88.0 cannot be pulled: ImagePullBackOff"


@pytest.mark.parametrize(
    ("looks", "what", "advice"),
    [
        ([ended(255, "exec /bin/sh: exec format error")], OTHER_KIND, ""),
        ([RUNNING] * 300, "there is no answer within 120 s", "firewall"),
        ([{"phase": "Pending", **container(waiting=NO_IMAGE)}], NOT_PULLED, ""),
    ],
    ids=["another machine", "silence", "no image"],
)
def test_what_keeps_it_from_an_answer_is_told(
    server: Said, lead: LeadIdentity, looks: list[Any], what: str, advice: str
) -> None:
    trial = Trial(server, lead)
    trial.shows(*looks)
    found = trial.run()
    assert found.level is Level.WRONG
    assert what in found.what
    assert advice in found.advice
    assert trial.deletes()


def test_a_pod_that_finds_no_node_in_time(server: Said, lead: LeadIdentity) -> None:
    trial = Trial(server, lead, schedule=Seconds(5))
    since = "2100-01-01T00:00:00Z"
    why = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are fit"}
    status = {"conditions": [{**why, "lastTransitionTime": since}]}
    trial.shows(*[status] * 12)
    found = trial.run()
    assert "probe finds no node: 0/2 nodes are fit" in found.what
    assert 5 < trial.time.now < 7


def test_it_waits_for_a_node_by_the_clock_of_the_api_server(
    server: Said, lead: LeadIdentity
) -> None:
    """This host's clock may be wrong, and the pod would seem to wait for an hour."""
    server.ahead = -3600.0
    trial = Trial(server, lead)
    since = datetime.fromtimestamp(time.time() + server.ahead, UTC)
    why = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "lastTransitionTime": f"{since:%FT%TZ}",
    }
    trial.shows({"phase": "Pending", "conditions": [why]}, ended(0))
    assert trial.find()[0].level is Level.OK


def test_one_that_somebody_else_deletes(server: Said, lead: LeadIdentity) -> None:
    found = Trial(server, lead).run()
    assert "was deleted before it had an answer" in found.what


def test_ctrl_c_removes_it_first(server: Said, lead: LeadIdentity) -> None:
    trial = Trial(server, lead)
    trial.shows(RUNNING, RUNNING)

    def stop(line: str) -> None:
        trial.told.append(line)
        if "tries to reach" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trial.probe.run(lead, stop)
    assert trial.deletes()
    assert trial.told[-1] == f"{trial.id}: is removed"


def test_a_right_that_lacks_is_told_and_nothing_is_to_be_removed(
    server: Said, lead: LeadIdentity
) -> None:
    trial = Trial(server, lead)
    denied = {"message": 'User "x" cannot patch resource "jobs"', "kind": "Status"}
    server.answer("PATCH", f"{JOBS}/{trial.id}", (403, denied))
    with pytest.raises(Refused) as caught:
        trial.run()
    assert f"may not patch jobs.batch {trial.id} in namespace jobs" in str(caught.value)
    assert "verb patch on jobs" in caught.value.advice
    assert not trial.told
    assert not trial.deletes()


def test_what_may_have_been_made_is_removed(server: Said, lead: LeadIdentity) -> None:
    trial = Trial(server, lead)
    server.answer("PATCH", f"{JOBS}/{trial.id}", (500, {}))
    with pytest.raises(Transient):
        trial.run()
    assert trial.told == [f"{trial.id}: is removed"]


def test_what_cannot_be_removed_is_told(server: Said, lead: LeadIdentity) -> None:
    trial = Trial(server, lead)
    trial.shows(*[ended(0)] * 2)
    server.answer("GET", f"{JOBS}/{trial.id}", (500, {}))
    assert trial.run().level is Level.OK
    assert f"{trial.id}: may be left: cannot get jobs.batch" in trial.told[-1]
    assert "burst gc --yes" in trial.told[-1]
    assert trial.time.now >= 20
