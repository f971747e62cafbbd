# SPDX-License-Identifier: MIT
"""The bursts of a provider that is kept: what changed is read, no more."""

import json
import time
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pytest

from burst.decode import from_json
from burst.errors import Transient
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.names import HOSTS, ID
from burst.kits.pods.status.kept_object import KeptObject
from burst.provider import Phase
from tests.kits.played_namespace import (
    BURSTS,
    JOBS,
    JOINED,
    NOW,
    PODS,
    REFUSED,
    Namespace,
    job,
    let_provision,
    pod,
)
from tests.kits.pods import bursts_in, make_spec, replace
from tests.support.set_clock import SetClock
from tests.support.waiting import wait_until


def test_what_does_not_change_costs_no_request(namespace: Namespace) -> None:
    namespace.watch()
    before = namespace.bursts.observe()
    asked = len(namespace.server.asked)
    for _ in range(5):
        found = namespace.bursts.observe()
        assert [status.phase for status in found] == [Phase.RUNNING] * 2
        assert all(a is b for a, b in zip(found, before, strict=True))
    assert len(namespace.server.asked) == asked


def test_a_pod_that_changes_changes_its_burst_alone(namespace: Namespace) -> None:
    watch = namespace.watch()
    _, other = namespace.bursts.observe()
    watch.say("MODIFIED", pod(BURSTS[0], waiting={"reason": "ContainerCreating"}))
    namespace.wait_for(Phase.PENDING, Phase.RUNNING)
    assert namespace.bursts.observe()[1] is other
    watch.say("MODIFIED", pod(BURSTS[0]))
    namespace.wait_for(Phase.RUNNING, Phase.RUNNING)
    assert namespace.asked("/pods?") == 2 + len(namespace.server.watches[PODS])


def test_a_burst_is_gone_with_its_last_object(namespace: Namespace) -> None:
    pods = namespace.watch()
    pods.say("DELETED", pod(BURSTS[0]))
    words = "lost its pod, which was deleted, and not by burst"
    wait_until(
        lambda: namespace.bursts.observe()[0].followers[0].lost == words,
        namespace.phases,
    )
    namespace.server.watches[JOBS][-1].say("DELETED", job(BURSTS[0]))
    wait_until(
        lambda: [s.burst_id for s in namespace.bursts.observe()] == [BURSTS[1]],
        namespace.phases,
    )


def test_why_a_broker_does_not_join_is_told_until_it_has(namespace: Namespace) -> None:
    clock = SetClock(NOW)
    bursts = bursts_in(namespace.server, clock)
    namespace.log(BURSTS[0], REFUSED)
    for _ in range(3):
        first, second = bursts.observe()
        assert "it gets no answer from tcp://h:1" in first.why
        assert not second.why
    namespace.log(BURSTS[0], JOINED)
    clock.now += 900
    first, _ = bursts.observe()
    assert not first.why


@pytest.mark.parametrize("ahead", [-3600.0, 0.0, 3600.0])
def test_pods_wait_for_nodes_by_the_clock_of_the_api_server(
    namespace: Namespace, ahead: float
) -> None:
    """This host's clock may be wrong, and pods would seem to wait for an hour."""

    def phase_after(waited: float) -> Phase:
        since = time.time() + ahead - waited
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "lastTransitionTime": f"{datetime.fromtimestamp(since, UTC):%FT%TZ}",
        }
        waits = pod(BURSTS[0])
        waits["status"] = {"phase": "Pending", "conditions": [condition]}
        namespace.serve(PODS, waits)
        return bursts_in(namespace.server).observe()[0].phase

    namespace.server.ahead = ahead
    assert phase_after(0) is Phase.PENDING
    assert phase_after(400) is Phase.FAILED  # `schedule` is 300 s


def test_the_log_of_a_crashed_broker_is_read_once(namespace: Namespace) -> None:
    ended = {"exitCode": 1, "reason": "Error"}
    crashed = pod(BURSTS[0], 2, terminated=ended)
    namespace.serve(PODS, crashed, pod(BURSTS[1]))
    namespace.log(BURSTS[0], "broker.crit: no such file")
    for _ in range(5):
        assert "no such file" in namespace.bursts.observe()[0].why
    log = f"{BURSTS[0]}-0-x/log"
    assert namespace.asked(log) == 1
    namespace.log(BURSTS[0], "broker.crit: another reason")
    again = pod(BURSTS[0], 3, terminated=ended)
    namespace.server.watches[PODS][-1].say("MODIFIED", again)
    wait_until(lambda: "another" in namespace.bursts.observe()[0].why, namespace.phases)
    assert namespace.asked(log) == 2


def test_a_log_that_cannot_be_read_is_asked_for_again(namespace: Namespace) -> None:
    namespace.serve(PODS, pod(BURSTS[0], 1, terminated={"exitCode": 1}), pod(BURSTS[1]))
    path = f"{PODS}/{BURSTS[0]}-0-x/log"
    namespace.server.answer("GET", path, (500, {"message": "no kubelet"}), (200, "why"))
    assert "its log cannot be read" in namespace.bursts.observe()[0].why
    assert namespace.bursts.observe()[0].why.endswith("why")


def provision(namespace: Namespace, place: Path) -> tuple[str, Manifest]:
    """Provision a burst; return its id and its Job, of which no watch tells yet."""
    spec = make_spec(place)
    made = let_provision(namespace.server, spec.burst_id)
    namespace.bursts.provision(spec)
    return spec.burst_id, made


def test_what_was_provisioned_is_there_with_the_next_look(
    namespace: Namespace, tmp_path: Path
) -> None:
    """The watch may be late; then this burst is listed, and no other."""
    namespace.watch()
    before = namespace.bursts.observe()
    burst, made = provision(namespace, tmp_path)
    namespace.server.answer("GET", JOBS, (503, {"kind": "Status", "message": "down"}))
    with pytest.raises(Transient):
        namespace.bursts.observe()
    asked = len(namespace.server.asked)
    namespace.serve(JOBS, made)
    namespace.serve(PODS)
    found = namespace.bursts.observe()
    assert {status.burst_id for status in found} == {*BURSTS, burst}
    assert all(known in found for known in before), "they are not listed, nor lost"
    lists = [path for _, path, _ in namespace.server.asked[asked:]]
    assert [path.partition("?")[0] for path in lists] == [JOBS, PODS]
    assert all(f"{ID}={burst}" in unquote(path) for path in lists)
    namespace.bursts.observe()
    assert len(namespace.server.asked) == asked + 2, "once is enough"


def test_what_was_resized_is_listed_anew_even_if_the_call_failed(
    namespace: Namespace, tmp_path: Path
) -> None:
    """The watch may be late, and what is listed must not be from before the call."""
    namespace.watch()
    namespace.bursts.observe()
    spec = replace(make_spec(tmp_path), burst_id=BURSTS[0])
    down = 503, {"kind": "Status", "message": "down"}
    namespace.server.answer("GET", f"{JOBS}/{BURSTS[0]}", down)
    with pytest.raises(Transient):
        namespace.bursts.resize(spec)
    larger = job(BURSTS[0])
    larger["metadata"]["annotations"][HOSTS] = "burst-0-[0-1]"
    namespace.serve(JOBS, larger)
    namespace.serve(PODS, pod(BURSTS[0]))
    asked = len(namespace.server.asked)
    hosts = [[f.host for f in s.followers] for s in namespace.bursts.observe()]
    assert hosts == [["burst-0-0", "burst-0-1"], ["burst-1-0"]]
    paths = [unquote(path) for _, path, _ in namespace.server.asked[asked:]]
    assert sum(f"{ID}={BURSTS[0]}" in path for path in paths) == 2
    assert not any(f"{ID}={BURSTS[1]}" in path for path in paths)


def test_how_it_was_before_it_was_listed_is_not_told_later(
    namespace: Namespace, tmp_path: Path
) -> None:
    """The watch goes on from before the list."""
    namespace.watch()
    namespace.server.answer("GET", f"{JOBS}/{BURSTS[0]}", (503, {"kind": "Status"}))
    with pytest.raises(Transient):
        namespace.bursts.resize(replace(make_spec(tmp_path), burst_id=BURSTS[0]))

    def version(number: int, hosts: str) -> Manifest:
        made = job(BURSTS[0])
        made["metadata"]["annotations"][HOSTS] = hosts
        made["metadata"]["resourceVersion"] = str(number)
        return made

    namespace.serve(JOBS, version(12, "burst-0-[0-1]"))
    namespace.serve(PODS, pod(BURSTS[0]))

    def hosts() -> list[list[str]]:
        return [[f.host for f in s.followers] for s in namespace.bursts.observe()]

    assert hosts() == [["burst-0-0", "burst-0-1"], ["burst-1-0"]]
    jobs = namespace.server.watches[JOBS][-1]
    jobs.say("MODIFIED", version(11, "burst-0-0"))
    other = job(BURSTS[1])
    other["metadata"]["annotations"][HOSTS] = "burst-1-1"
    jobs.say("MODIFIED", other)
    wait_until(lambda: "burst-1-1" in hosts()[1], hosts)
    assert hosts()[0] == ["burst-0-0", "burst-0-1"]
    jobs.say("MODIFIED", version(13, "burst-0-[0-2]"))
    wait_until(lambda: len(hosts()[0]) == 3, hosts)


def test_the_end_of_one_before_does_not_end_what_was_listed(
    namespace: Namespace, tmp_path: Path
) -> None:
    """The watch is late: it tells of the deletion of a Job of the same name."""
    namespace.watch()
    burst, made = provision(namespace, tmp_path)
    namespace.serve(JOBS, made)
    namespace.serve(PODS)
    namespace.bursts.observe()
    jobs = namespace.server.watches[JOBS][-1]
    older = {**made, "metadata": {**made["metadata"], "uid": "older"}}
    jobs.say("DELETED", older)
    jobs.say("DELETED", job(BURSTS[0]))
    pods = namespace.server.watches[PODS][-1]
    pods.say("DELETED", pod(BURSTS[0]))

    def ids() -> list[str]:
        return [status.burst_id for status in namespace.bursts.observe()]

    wait_until(lambda: BURSTS[0] not in ids(), ids)
    assert burst in ids()
    jobs.say("DELETED", made)
    wait_until(lambda: burst not in ids(), ids)


def test_what_ended_a_pod_is_told_until_the_next_one_runs(namespace: Namespace) -> None:
    """Its object is gone a moment later, and what a Job makes does not say why."""
    pods = namespace.watch()
    evicted = pod(BURSTS[0])
    evicted["metadata"]["deletionTimestamp"] = "1970-01-01T00:16:00Z"
    condition = {"type": "DisruptionTarget", "status": "True"}
    condition |= {
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    evicted["status"]["conditions"] = [condition]
    why = "was evicted, as when a node is drained: Eviction API: evicting"

    def told() -> list[tuple[str, str]]:
        return [(f.lost, f.why) for f in namespace.bursts.observe()[0].followers]

    runs = pod(BURSTS[0])
    runs["metadata"] |= {"name": f"{BURSTS[0]}-0-y", "uid": "another"}
    waits = {**runs, "spec": {}, "status": {"phase": "Pending"}}
    for words, (change, seen) in {
        f"{why}; has no pod yet": ("DELETED", evicted),
        f"{why}; its next pod waits for a node": ("ADDED", waits),
    }.items():
        pods.say(change, seen)
        wait_until(lambda: told() == [(why, words)], told)  # noqa: B023
    namespace.server.answer("GET", f"{PODS}/{BURSTS[0]}-0-y/log", (200, JOINED))
    pods.say("MODIFIED", runs)
    wait_until(lambda: told() == [("", "")], told)
    assert namespace.server.watches[PODS] == [pods], "it was told, and not listed"


def test_of_what_is_gone_from_one_list_to_the_next_no_cause_is_known(
    namespace: Namespace,
) -> None:
    """The first look lists, and so does the second, which begins to watch."""
    namespace.bursts.observe()
    namespace.serve(PODS, pod(BURSTS[1]))
    (lost,) = namespace.bursts.observe()[0].followers
    assert lost.lost == "lost its pod, for a reason that was not seen"


def test_what_leaves_with_its_host_is_no_loss(namespace: Namespace) -> None:
    pods = namespace.watch()
    jobs = namespace.server.watches[JOBS][-1]
    pods.say("DELETED", pod(BURSTS[0]))

    def hosts() -> list[tuple[str, str]]:
        return [(f.host, f.lost) for f in namespace.bursts.observe()[0].followers]

    wait_until(lambda: hosts() and hosts()[0][1], hosts)
    smaller = job(BURSTS[0])
    smaller["metadata"]["annotations"][HOSTS] = "other"
    jobs.say("MODIFIED", smaller)
    wait_until(lambda: hosts() == [("other", "")], hosts)
    jobs.say("MODIFIED", job(BURSTS[0]))
    wait_until(lambda: hosts() and hosts()[0] != ("other", ""), hosts)
    assert not any(lost for _, lost in hosts())


def test_a_condition_that_no_status_depends_on_changes_no_burst(
    namespace: Namespace,
) -> None:
    watch = namespace.watch()
    first, second = namespace.bursts.observe()
    unready, scheduled = pod(BURSTS[0]), {"type": "PodScheduled", "status": "True"}
    unready["status"]["conditions"] = [{"type": "Ready", "status": "False"}, scheduled]
    watch.say("MODIFIED", unready)
    watch.say("MODIFIED", pod(BURSTS[1], restarts=1))
    wait_until(lambda: namespace.bursts.observe()[1] is not second, namespace.phases)
    assert namespace.bursts.observe()[0] is first


def usual_pod(number: int) -> Manifest:
    """Return a pod that runs, with all conditions that a kubelet writes."""
    made = pod(f"burst-{number // 50}")
    made["metadata"]["name"] += f"{number}"
    made["metadata"]["annotations"][HOSTS] = f"burst-{number // 50}-[0-49]"
    made["metadata"]["uid"] = f"0f6c2c3e-1111-4222-8333-{number:012d}"
    made["metadata"]["managedFields"] = [{"manager": "kubelet", "fieldsV1": {}}] * 9
    container = made["spec"]["containers"][0]
    container["image"] = "ghcr.io/flux-framework/flux-burst:0.88.0"
    container["resources"] = {"limits": {"cpu": "4", "memory": "8Gi"}}
    since = "2026-01-01T00:00:00Z"
    made["status"]["conditions"] = [
        {"type": kind, "status": "True", "lastTransitionTime": since}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return made


def test_a_kept_pod_takes_little_memory() -> None:
    """A daemon may keep thousands; whole, each would take 15 KiB."""
    texts = [json.dumps(usual_pod(number)) for number in range(300)]
    from_json(texts[0], KeptObject)
    tracemalloc.start()
    try:
        kept = [from_json(text, KeptObject) for text in texts]
        size = tracemalloc.get_traced_memory()[0] / len(kept)
    finally:
        tracemalloc.stop()
    assert size < 1300, "1,130 bytes by CPython 3.11"
