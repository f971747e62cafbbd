# SPDX-License-Identifier: MIT
"""A burst of several parts: which hosts it has, which leave, and how it is."""

from pathlib import Path
from typing import Any

import pytest

from burst.errors import SpecRefused
from burst.kits.kube.kinds import Manifest, annotations_of, name_of
from burst.kits.pods.names import (
    HOSTS,
    LEAVING,
    SPEC,
    STARTED,
    first_of,
    parse_hosts,
    part_name,
)
from burst.kits.pods.status.burst_objects import BurstObjects, group_by_burst
from burst.kits.pods.status.kept_object import kept
from burst.kits.pods.template.render import render
from burst.provider import BurstStatus, Failure, Phase
from tests.kits.pods import SETTINGS, TAGS, make_spec, replace
from tests.kits.seen_pods import (
    EARLIER,
    RUNNING,
    about,
    look,
    pod,
    thing,
    unschedulable,
)


def part(kind: str, name: str, hosts: str, **more: Any) -> Manifest:
    noted = {HOSTS: hosts, SPEC: "1", STARTED: "true", **more.pop("annotations", {})}
    made = thing(kind, name, **more)
    made["metadata"]["annotations"] = noted
    return made


def pod_of(name: str, hosts: str, index: int, made: Manifest | None = None) -> Manifest:
    """Return a pod of this part, which runs; or `made` as one."""
    made = made or pod(index, **RUNNING)
    made["metadata"] |= {"name": f"{name}-{index}-x", "annotations": {HOSTS: hosts}}
    return made


def parse(*objects: Manifest) -> BurstObjects:
    (found,) = group_by_burst(map(kept, objects))
    return found


def words(status: BurstStatus) -> dict[str, Phase]:
    return {each.host: each.phase for each in status.followers}


ENDING = {"metadata": {"deletionTimestamp": EARLIER}}
RUNS = Phase.RUNNING
TWO_RUN = {"n-0": RUNS, "n-1": RUNS}
MAIN = part("Job", "b", "n-[0-1]"), *(pod_of("b", "n-[0-1]", i) for i in (0, 1))


def test_a_growth_has_further_hosts_and_pods_of_its_own() -> None:
    growth = part("Job", "b-g2", "n-[5-6]"), pod_of("b-g2", "n-[5-6]", 0)
    earlier = part("Job", "b-g10", "n-9"), pod_of("b-g10", "n-9", 0)
    found = parse(*earlier, *growth, *MAIN)
    assert found.hosts == ("n-0", "n-1", "n-5", "n-6", "n-9")
    assert found.growths == ("b-g10", "b-g2")
    status = look(*earlier, *growth, *MAIN)
    assert status.phase is Phase.PENDING
    assert status.why == "n-6 has no pod yet"
    assert words(status) == {**TWO_RUN, "n-5": RUNS, "n-6": Phase.PENDING, "n-9": RUNS}


def test_what_lacks_capacity_of_a_growth_fails_alone() -> None:
    """Else the daemon would end all of the burst."""
    growth = part("Job", "b-g2", "n-2"), pod_of("b-g2", "n-2", 0, unschedulable(0))
    status = look(*MAIN, *growth, schedule=99)
    assert (status.phase, status.failure) == (Phase.FAILED, Failure.CAPACITY)
    assert "finds no node" in status.why
    assert words(status) == {**TWO_RUN, "n-2": Phase.FAILED}


def test_a_growth_whose_pods_are_denied_fails_alone() -> None:
    denied = about("Job", "b-g2", "FailedCreate: violates PodSecurity")
    status = look(*MAIN, part("Job", "b-g2", "n-2"), warnings=denied)
    assert "violates PodSecurity" in status.why
    assert [w for w in words(status).values() if w is Phase.FAILED] == [Phase.FAILED]


def test_a_growth_that_was_not_started_waits() -> None:
    job = part("Job", "b-g2", "n-2", spec={"suspend": True})
    del job["metadata"]["annotations"][STARTED]
    status = look(*MAIN, job)
    assert status.phase is Phase.PENDING
    assert status.why == "its growth is not complete; resize it again"


LEAVE: dict[str, Manifest] = {
    "its Job is being deleted": part("Job", "b-g2", "n-2", **ENDING),
    "its pod is left": pod_of("b-g2", "n-2", 0),
    "noted": part("ConfigMap", "b-g2", "n-2", annotations={LEAVING: "n-2"}),
}


@pytest.mark.parametrize("left", LEAVE.values(), ids=LEAVE)
def test_what_a_shrink_has_not_deleted_yet_is_listed(left: Manifest) -> None:
    status = look(*MAIN, left)
    assert status.phase is Phase.RUNNING
    assert words(status)["n-2"] is Phase.ENDING
    assert parse(*MAIN, left).hosts == ("n-0", "n-1")


def test_the_hosts_noted_at_a_job_leave_even_without_a_pod() -> None:
    job = part("Job", "b", "n-0", annotations={LEAVING: "n-1"})
    for pods in ((pod_of("b", "n-[0-1]", 0),), MAIN[1:]):
        status = look(job, *pods)
        assert status.phase is Phase.RUNNING
        assert words(status) == {"n-0": Phase.RUNNING, "n-1": Phase.ENDING}


def test_a_pod_that_does_not_leave_names_its_node() -> None:
    stuck = pod_of("b", "n-[0-1]", 1)
    stuck["metadata"] |= ENDING["metadata"]
    job = part("Job", "b", "n-0", annotations={LEAVING: "n-1"})
    status = look(job, MAIN[1], stuck)
    assert status.why == (
        "b-1-x should have ended, so its node node may be dead: if it is,"
        " `kubectl delete pod --force` ends the pod"
    )
    assert (status.phase, words(status)["n-1"]) == (Phase.RUNNING, Phase.ENDING)


def test_a_marker_of_a_growth_that_is_begun_is_no_follower() -> None:
    found = parse(*MAIN, part("ConfigMap", "b-g2", "n-2"))
    assert (found.hosts, found.leaving) == (("n-0", "n-1"), ())
    assert found.growths == ("b-g2",)


GROWTH = part("Job", "b-g2", "n-2"), pod_of("b-g2", "n-2", 0)
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


def test_a_part_that_is_complete_is_that_part_alone() -> None:
    ended = [pod_of("b", "n-[0-1]", i, pod(i, phase="Succeeded")) for i in (0, 1)]
    status = look(part("Job", "b", "n-[0-1]", status=COMPLETE), *ended, *GROWTH)
    assert (status.phase, status.failure) == (Phase.FAILED, Failure.OTHER)
    assert status.why == "all brokers of Job b have ended"
    failed = dict.fromkeys(("n-0", "n-1"), Phase.FAILED)
    assert words(status) == {**failed, "n-2": RUNS}


MAIN_ENDS = part("Job", "b", "n-[0-1]", **ENDING), *MAIN[1:]


@pytest.mark.parametrize("main", [MAIN_ENDS, MAIN[1:], ()], ids=["ends", "pods", "-"])
def test_a_first_part_that_is_deleted_is_that_part_alone(
    main: tuple[Manifest, ...],
) -> None:
    """Its hosts are known as long as anything of it exists."""
    status = look(*main, *GROWTH)
    assert status.phase is Phase.FAILED
    assert status.why == "b was deleted, and not by burst"
    gone = dict.fromkeys(("n-0", "n-1") if main else (), Phase.FAILED)
    assert words(status) == {**gone, "n-2": Phase.RUNNING}
    assert parse(*main, *GROWTH).is_complete


def test_the_burst_ends_with_all_its_jobs() -> None:
    growth = part("Job", "b-g2", "n-2", **ENDING)
    assert not parse(*MAIN, growth).ending
    assert parse(growth).ending
    status = look(*MAIN_ENDS, growth, GROWTH[1])
    assert words(status) == dict.fromkeys(("n-0", "n-1", "n-2"), Phase.ENDING)


@pytest.mark.parametrize("form", ["job", "operator"])
def test_the_objects_of_a_growth_have_names_of_their_own(
    tmp_path: Path, form: Any
) -> None:
    spec = make_spec(tmp_path)
    settings = replace(SETTINGS, form=form, names=True)
    more = replace(spec, hosts=spec.hosts[1:], ranks=spec.ranks[1:])
    made = render(more, settings, TAGS, 0, first=1)
    name = f"{spec.burst_id}-g1"
    services = [item for item in made if item["kind"] == "Service"]
    assert [name_of(item) for item in services] == list(more.hosts)
    assert {name_of(item) for item in made if item not in services} == {name}
    for item in made:
        assert item["metadata"]["labels"] == TAGS.labels(spec.burst_id)
        assert parse_hosts(annotations_of(item)[HOSTS]) == more.hosts
    if form == "job":
        template = made[-1]["spec"]["template"]
        assert annotations_of(template)[HOSTS] == more.hosts[0]
        assert template["spec"]["subdomain"] == spec.burst_id
        (config,) = (item for item in made if item["kind"] == "ConfigMap")
        assert config["data"]["hosts"] == f"{more.hosts[0]}\n"


def test_names_of_growths_are_told_from_others_and_have_a_length(
    tmp_path: Path,
) -> None:
    assert first_of("b", part_name("b", 12)) == 12
    for other in ("b", "b-g", "b-gx", "b-g2-entrypoint", "c-g2", "bb-g2"):
        assert first_of("b", other) == 0
    spec = replace(make_spec(tmp_path), burst_id="b" * 61)
    more = replace(spec, hosts=spec.hosts[1:], ranks=spec.ranks[1:])
    assert render(spec, SETTINGS, TAGS, 0)
    with pytest.raises(SpecRefused, match="characters"):
        render(more, SETTINGS, TAGS, 0, first=1)
