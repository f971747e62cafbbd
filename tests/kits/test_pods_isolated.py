# SPDX-License-Identifier: MIT
"""An isolated burst as objects, and what they say of it."""

import base64
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from burst.errors import Refused, SpecRefused
from burst.kits import certificate
from burst.kits.kube.kinds import Manifest, name_of
from burst.kits.pods import OfferTable, PodBursts, PodSettings
from burst.kits.pods.names import HOSTS, ID, INDEX, PROGRAM
from burst.kits.pods.pod_provider import offers
from burst.kits.pods.status.burst_objects import group_by_burst
from burst.kits.pods.status.describe import describe
from burst.kits.pods.status.isolated_status import (
    bounded,
    describe_instance,
    exit_status_of,
    failed_pod,
    program_of,
)
from burst.kits.pods.status.kept_object import kept
from burst.kits.pods.template.render import render
from burst.model.program import Program
from burst.model.shape import Shape
from burst.provider import (
    OUTPUT_MOST,
    BurstSpec,
    BurstStatus,
    Failure,
    InstanceStatus,
    Phase,
)
from burst.testing import isolate
from tests.kits.kubeserver import Said
from tests.kits.pods import (
    SETTINGS,
    TAGS,
    bursts_in,
    by_kind,
    make_spec,
    pod_spec,
    replace,
)

NOW = 1000.0
EARLIER = "1970-01-01T00:15:00Z"


@pytest.fixture
def spec(tmp_path: Path) -> BurstSpec:
    return isolate(make_spec(tmp_path), "hostname")


def config(spec: BurstSpec, settings: PodSettings = SETTINGS) -> dict[str, str]:
    found: dict[str, str] = by_kind(spec, settings)["ConfigMap"]["data"]
    return found


def test_nothing_of_it_is_ever_started_again(spec: BurstSpec) -> None:
    job = by_kind(replace(spec, lease_end=500.0), SETTINGS)["Job"]["spec"]
    assert job["backoffLimitPerIndex"] == 0
    assert "backoffLimit" not in job
    assert job["activeDeadlineSeconds"] == 501
    pod = job["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["subdomain"] == spec.burst_id


def test_its_brokers_find_each_other_by_name(spec: BurstSpec) -> None:
    objects = by_kind(spec, SETTINGS)
    assert list(objects) == ["ConfigMap", "Secret", "Service", "Job"]
    assert {name_of(item) for item in objects.values()} == {spec.burst_id}
    tables = tomllib.loads(objects["ConfigMap"]["data"]["broker.toml"])
    (entry,) = tables["bootstrap"]["hosts"]
    assert entry == {"host": f"{spec.burst_id}-[0-1]"}
    connect = f"tcp://%h.{spec.burst_id}.jobs.svc:%p"
    assert tables["bootstrap"]["default_connect"] == connect
    service = objects["Service"]["spec"]
    assert service["clusterIP"] == "None"
    assert service["publishNotReadyAddresses"] is True
    assert service["selector"] == TAGS.labels(spec.burst_id)
    assert spec.lead.endpoint not in json.dumps(objects)


def test_it_has_the_resources_of_the_offer(spec: BurstSpec) -> None:
    table = {"nodes": OfferTable(cores=4, gpus=2, max_nodes=4)}
    large = replace(spec, shape=Shape(4, 2))
    found = json.loads(config(large, replace(SETTINGS, offers=table))["R"])
    (group_,) = found["execution"]["R_lite"]
    assert group_ == {"rank": "0-1", "children": {"core": "0-3", "gpu": "0-1"}}
    assert found["execution"]["nodelist"] == [f"{spec.burst_id}-[0-1]"]
    (plain,) = json.loads(config(spec)["R"])["execution"]["R_lite"]
    assert "gpu" not in plain["children"]


def test_its_certificate_is_its_own_and_in_the_secret_alone(spec: BurstSpec) -> None:
    objects = by_kind(spec, SETTINGS)
    data = objects.pop("Secret")["data"]
    made = certificate.parse(base64.b64decode(data["curve.cert"]).decode(), "it")
    lead = certificate.read(Path(spec.lead.certificate))
    assert made.public != lead.public
    text = json.dumps(objects)
    assert made.secret.decode() not in text
    assert lead.secret.decode() not in json.dumps(data) + text


def test_a_jobspec_is_in_the_secret_alone_and_refused_where_it_is_too_large(
    spec: BurstSpec,
) -> None:
    program = Program(kind="job", jobspec='{"TOKEN":"abracadabra"}')
    objects = by_kind(replace(spec, program=program), SETTINGS)
    data = objects.pop("Secret")["data"]
    assert b"abracadabra" in base64.b64decode(data["jobspec.json"])
    assert "abracadabra" not in json.dumps(objects)
    large = Program(kind="job", jobspec=json.dumps({"FILE": "x" * 1024 * 1024}))
    with pytest.raises(SpecRefused, match="a Secret of Kubernetes holds 1048576"):
        render(replace(spec, program=large), SETTINGS, TAGS, 0)


def test_only_its_lead_runs_the_program(spec: BurstSpec) -> None:
    data = config(spec)
    assert '[ "$JOB_COMPLETION_INDEX" = 0 ]' in data["start"]
    assert data["program"].endswith(
        "exec flux python /burst/config/run-isolated.py flux"
        " /burst/secret/jobspec.json /dev/termination-log\n"
    )
    assert "def run_script" in data["run-isolated.py"]
    probe = pod_spec(spec, SETTINGS)["containers"][0]["readinessProbe"]
    assert probe["exec"]["command"][-1] in data["program"]


def test_one_without_a_job_stays(spec: BurstSpec) -> None:
    idle = replace(spec, program=Program(kind="interactive"))
    assert "exec tail -f /dev/null\n" in config(idle)["program"]
    service = replace(spec, program=Program(kind="service"))
    settings = replace(SETTINGS, service=("serve", "--port", "5000"))
    assert "exec serve --port 5000\n" in config(service, settings)["program"]
    with pytest.raises(Refused, match="no service"):
        render(service, SETTINGS, TAGS, 0)


def test_the_operator_makes_none(spec: BurstSpec) -> None:
    settings = replace(SETTINGS, form="operator")
    with pytest.raises(Refused, match="isolated bursts are Jobs"):
        render(spec, settings, TAGS, 0)
    assert [offer.modes for offer in offers(settings)] == [("joined",)]
    with pytest.raises(ValueError, match='mode = "isolated" needs form = "job"'):
        replace(settings, mode="isolated")
    first = replace(SETTINGS, mode="isolated")
    assert [offer.modes for offer in offers(first)] == [("isolated", "joined")]


def thing(kind: str, name: str = "b", **more: Any) -> Manifest:
    annotations = {HOSTS: "b-[0-1]", PROGRAM: more.pop("program", "job")}
    labels = {ID: "b", **more.pop("labels", {})}
    meta: Manifest = {"name": name, "creationTimestamp": EARLIER}
    meta |= {"labels": labels, "annotations": annotations, **more.pop("metadata", {})}
    return {"kind": kind, "metadata": meta, **more}


def pod(index: int, phase: str = "Running", **more: Any) -> Manifest:
    """Return a pod with a sidecar, which is first, is not ready, and never ends."""
    status: dict[str, Any] = {"phase": phase, **more.pop("status", {})}
    broker: Manifest = {"name": "broker", "ready": more.pop("ready", False)}
    if phase == "Running":
        broker["state"] = {"running": {}}
    if "ended" in more:
        broker["state"] = {"terminated": {"exitCode": 0, **more.pop("ended")}}
    sidecar = {"name": "istio-proxy", "ready": False, "state": {"running": {}}}
    status["containerStatuses"] = [sidecar, broker]
    made = thing("Pod", f"p{index}", labels={INDEX: str(index)}, **more)
    containers = [{"name": "istio-proxy"}, {"name": "broker", "image": "flux:1"}]
    spec = {"nodeName": "node", "containers": containers}
    return {**made, "status": status, "spec": spec}


JOB = thing("Job")
RESULT = {"message": '{"exit_status": 3}'}


def look(*objects: Manifest, log: str | None = "", **options: Any) -> BurstStatus:
    (found,) = group_by_burst(map(kept, objects))
    base = describe(found, {}, {}, 300, NOW)
    settings = replace(SETTINGS, **options)
    return describe_instance(found, base, log, settings)


def seen(*objects: Manifest, **options: Any) -> tuple[Phase, bool, int | None]:
    status = look(*objects, **options)
    assert status.instance is not None
    return status.phase, status.instance.online, status.instance.exit_status


def instance(*objects: Manifest, **options: Any) -> InstanceStatus:
    found = look(*objects, **options).instance
    assert found is not None
    return found


def test_its_lead_says_when_it_is_up_and_how_to_get_there_is_told() -> None:
    assert seen(JOB) == (Phase.PENDING, False, None)
    assert seen(JOB, pod(0), pod(1)) == (Phase.RUNNING, False, None)
    assert seen(JOB, pod(0, ready=True), pod(1)) == (Phase.RUNNING, True, None)
    proxy = "-- flux proxy local:///burst/run/broker/local"
    found = instance(JOB, pod(0, ready=True), pod(1))
    assert found.access == f"kubectl exec -it -n jobs p0 -c broker {proxy}"
    served = thing("Job", program="service")
    serving = instance(served, pod(0, ready=True))
    assert serving.access.startswith("http://b-0.b.jobs.svc:5000 (and kubectl")
    assert instance(JOB).access == ""


def test_its_end_and_its_output_are_told() -> None:
    done = pod(0, "Succeeded", ended=RESULT)
    over = thing("Job", status={"conditions": [{"type": "Complete", "status": "True"}]})
    for objects in ((JOB, done, pod(1)), (over, done, pod(1, "Succeeded"))):
        assert seen(*objects) == (Phase.RUNNING, False, 3)
        assert instance(*objects, log="words\n").output == "words\n"
    assert seen(JOB, done, pod(1), log=None) == (Phase.RUNNING, False, None)
    # What is deleted tells its end all the same.
    ending = thing("Job", metadata={"deletionTimestamp": EARLIER})
    assert seen(ending, done) == (Phase.ENDING, False, 3)


def test_a_sidecar_that_goes_on_hides_no_end() -> None:
    """Its pod is Running for as long as one container runs."""
    done = pod(0, "Running", ended=RESULT)
    assert seen(JOB, done, pod(1)) == (Phase.RUNNING, False, 3)
    lost = pod(0, "Running", ended={"exitCode": 1})
    assert seen(JOB, lost, pod(1)) == (Phase.FAILED, False, None)
    early = pod(1, "Running", ended={"exitCode": 1})
    assert seen(JOB, pod(0), early)[0] is Phase.FAILED


def test_brokers_that_leave_before_their_lead_are_no_failure() -> None:
    left = pod(1, "Succeeded", ended={})
    assert seen(JOB, pod(0, ready=True), left) == (Phase.RUNNING, True, None)
    assert seen(JOB, pod(0), pod(1, "Failed"))[0] is Phase.FAILED
    assert seen(JOB, pod(0, ready=True), pod(1, "Failed"))[0] is not Phase.FAILED


def test_a_pod_that_finds_no_node_is_a_failure_though_the_lead_runs() -> None:
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    waits = scheduled | {"lastTransitionTime": "1970-01-01T00:10:00Z"}
    status = look(JOB, pod(0), pod(1, "Pending", status={"conditions": [waits]}))
    assert (status.phase, status.failure) == (Phase.FAILED, Failure.CAPACITY)
    assert status.why.startswith("for 400 s, b-1 finds no node")


CRASHED = pod(0, "Failed", ended={"exitCode": 1, "reason": "Error"})
EVICTED = pod(0, "Failed", status={"reason": "Evicted"})
DELETED = pod(0, "Failed", ended={"exitCode": 137})
DELETED["metadata"]["deletionTimestamp"] = EARLIER
ODD = pod(0, "Succeeded", ended={"message": "what?"})
BAD_INIT = {"name": "stage", "state": {"terminated": {"exitCode": 7}}}
UNPREPARED = pod(0, "Failed", status={"initContainerStatuses": [BAD_INIT]})
NONE = "ended without a result: exit status"


@pytest.mark.parametrize(
    ("lead", "log", "why"),
    [
        (CRASHED, "broker.crit: no\n", f"{NONE} 1: broker.crit: no"),
        (EVICTED, "", "was evicted by its node"),
        (ODD, "", f"{NONE} 0: its log is empty"),
        (DELETED, "rc2.0: Hangup\n", "was deleted before it had a result"),
        (
            UNPREPARED,
            "its log is empty",
            "ended without a result: its init container stage ended with exit status 7",
        ),
    ],
)
def test_a_lead_without_a_result_is_a_failure(
    lead: Manifest, log: str, why: str
) -> None:
    status = look(JOB, lead, pod(1), log=log)
    assert (status.phase, status.why) == (Phase.FAILED, f"p0 {why}")
    assert status.failure is Failure.OTHER


@pytest.mark.parametrize("key", ["completedIndexes", "failedIndexes"])
def test_a_lead_that_somebody_removed_is_a_failure(key: str) -> None:
    counted = thing("Job", status={key: "0"})
    status = look(counted, pod(1))
    assert status.phase is Phase.FAILED
    assert "was deleted before" in status.why
    assert seen(thing("Job", status={key: "1"}), pod(1))[0] is Phase.PENDING


def test_a_lead_that_made_way_for_others_was_reclaimed() -> None:
    condition = {"type": "DisruptionTarget", "reason": "PreemptionByScheduler"}
    lead = pod(0, "Failed", status={"conditions": [condition]})
    status = look(JOB, lead, pod(1))
    assert (status.phase, status.failure) == (Phase.FAILED, Failure.RECLAIMED)
    # Its program had ended before.
    done = pod(0, "Succeeded", ended=RESULT)
    gone = pod(1, "Failed", status={"conditions": [condition]})
    over = thing("Job", status={"conditions": [{"type": "Failed", "status": "True"}]})
    status = look(over, done, gone)
    assert (status.phase, status.failure) == (Phase.RUNNING, Failure.OTHER)


@pytest.mark.parametrize("program", ["interactive", "service"])
def test_what_has_no_job_ends_as_its_lead_does(program: str) -> None:
    ended = {"exitCode": 1}
    lead = pod(0, "Failed", ended=ended, program=program)
    job = thing("Job", program=program)
    assert seen(job, lead) == (Phase.RUNNING, False, 1)
    assert instance(job, lead, log="no such file\n").output == "no such file\n"
    evicted = pod(0, "Failed", status={"reason": "Evicted"}, program=program)
    assert seen(job, evicted) == (Phase.FAILED, False, None)


def test_an_output_is_bounded_and_says_so() -> None:
    assert bounded("short") == "short"
    long = "é" * OUTPUT_MOST
    cut = bounded(long)
    assert cut.startswith(f"[{2 * OUTPUT_MOST} bytes; only the end is shown]\n")
    assert OUTPUT_MOST - 2 <= len(cut.encode()) <= OUTPUT_MOST
    assert cut.endswith("éé")


def test_what_joins_has_no_program() -> None:
    (found,) = group_by_burst(map(kept, [thing("Job", program="")]))
    assert program_of(found) == ""
    assert exit_status_of(found) is None
    assert failed_pod(found) is None


@pytest.fixture
def server(server: Said) -> Said:
    """A cluster with an isolated burst in it that has ended."""
    server.serve_nothing()
    server.serve("/apis/batch/v1/namespaces/jobs/jobs", JOB)
    server.serve(PODS, pod(0, "Succeeded", ended=RESULT))
    return server


PODS = "/api/v1/namespaces/jobs/pods"
LOG = f"{PODS}/p0/log"


def result_of(bursts: PodBursts) -> tuple[int | None, str]:
    (status,) = bursts.observe()
    assert status.instance
    return status.instance.exit_status, status.instance.output


@pytest.fixture
def bursts(server: Said) -> PodBursts:
    return bursts_in(server, lambda: NOW)


def test_the_log_is_read_whole(server: Said, bursts: PodBursts) -> None:
    server.answer("GET", LOG, (200, "one\ntwo\n"))
    assert result_of(bursts) == (3, "one\ntwo\n")
    (asked,) = {path for _, path, _ in server.asked if "/log" in path}
    assert asked.endswith("?limitBytes=16777216&container=broker")


def test_a_log_that_cannot_be_read_is_waited_for_but_not_for_ever(
    server: Said, bursts: PodBursts
) -> None:
    server.answer("GET", LOG, (500, {"kind": "Status", "message": "no kubelet"}))
    for _ in range(19):
        assert result_of(bursts) == (None, "")
    status, output = result_of(bursts)
    assert status == 3
    assert "its log cannot be read: " in output


def test_why_a_lead_failed_is_in_its_log(server: Said, bursts: PodBursts) -> None:
    server.serve(PODS, pod(0, "Failed", ended={"exitCode": 1}))
    server.answer("GET", LOG, (200, "broker.crit: no such file\n"))
    (found,) = bursts.observe()
    assert found.why.endswith("exit status 1: broker.crit: no such file")


def test_it_may_have_an_image_of_its_own(spec: BurstSpec) -> None:
    found = pod_spec(replace(spec, image="lammps:2"), SETTINGS)
    assert [each["image"] for each in found["containers"]] == ["lammps:2"]
