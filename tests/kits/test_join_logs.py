# SPDX-License-Identifier: MIT
"""Which logs of running pods are read, and when."""

from datetime import UTC, datetime
from typing import Any

from burst.errors import Transient
from burst.kits.join_errors import explain_log
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.status.container_log import ContainerLog, JoinLogs, running_logs
from burst.kits.pods.status.kept_object import kept

REFUSED = "<7>overlay.debug[1]: parent sockevent tcp://10.0.0.1:8050 closed"
JOINED = "<6>broker.info[1]: parent-ready: join->config-sync 4ms"


def pod(name: str, started: float, restarts: int = 0) -> Manifest:
    time = datetime.fromtimestamp(started, UTC).isoformat()
    state: dict[str, Any] = {"running": {"startedAt": time}}
    status = {"name": "broker", "restartCount": restarts, "state": state}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "broker"}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }


class Nodes:
    """What the logs of pods say, and how often they were read."""

    def __init__(self, **logs: str) -> None:
        self.logs = logs
        self.away: set[str] = set()
        """The pods whose nodes do not answer."""
        self.read: list[str] = []
        self.joining = JoinLogs(self._tail)

    def say(self, pods: list[Manifest], now: float) -> dict[str, str]:
        return self.joining.read(running_logs(map(kept, pods)), now)

    def _tail(self, log: ContainerLog) -> str:
        self.read.append(log.pod)
        if log.pod in self.away:
            raise Transient("its node does not answer in time")
        return self.logs.get(log.pod, "")


def test_a_broker_gets_time_to_join_first() -> None:
    nodes = Nodes(a=REFUSED)
    assert nodes.say([pod("a", 1000)], 1003) == {}
    assert not nodes.read
    found = nodes.say([pod("a", 1000)], 1004)
    assert "nothing listens" in explain_log(found["a"])


def test_one_that_has_joined_is_read_once() -> None:
    nodes = Nodes(a=JOINED)
    for now in range(1000, 3000, 2):
        assert nodes.say([pod("a", 1000)], now) == {}
    assert nodes.read == ["a"]


def test_one_that_does_not_is_read_less_and_less_often_and_at_last_not_at_all() -> None:
    nodes = Nodes(a=REFUSED)
    for now in range(1000, 3000, 2):
        found = nodes.say([pod("a", 1000)], now)
    assert found == {"a": REFUSED}, "what was read last is still told"
    assert 10 < len(nodes.read) < 25
    nodes.logs["a"] = JOINED
    assert nodes.say([pod("a", 3000, restarts=1)], 3004) == {}, "another one"


def test_one_that_joins_after_all_has_nothing_to_explain() -> None:
    nodes = Nodes(a=REFUSED)
    assert nodes.say([pod("a", 1000)], 1004)
    nodes.logs["a"] = JOINED
    assert nodes.say([pod("a", 1000)], 1009) == {}


def test_only_some_are_read_at_a_time_and_those_that_wait_longest_first() -> None:
    pods = [pod(name, 1000) for name in "abcdef"]
    nodes = Nodes(**dict.fromkeys("abcdef", JOINED))
    nodes.say(pods, 2000)
    assert len(nodes.read) == 4
    nodes.say(pods, 2002)
    assert sorted(nodes.read) == list("abcdef")


def test_a_node_that_does_not_answer_ends_the_round() -> None:
    """As each log of such a node takes seconds, and all bursts wait for it."""
    pods = [pod(name, 1000) for name in "abc"]
    nodes = Nodes(c=JOINED)
    nodes.away = {"a", "b"}
    for rounds in (1, 2):
        found = nodes.say(pods, 2000)
        assert len(nodes.read) == rounds
    assert "cannot be read: its node does not" in found["a"]
    assert nodes.say(pods, 2000).keys() == {"a", "b"}
    assert nodes.read == ["a", "b", "c"]


def test_what_does_not_run_is_not_read() -> None:
    nodes = Nodes(a=REFUSED)
    waiting = pod("a", 1000)
    waiting["status"]["containerStatuses"][0]["state"] = {"waiting": {}}
    assert nodes.say([waiting], 2000) == {}
    assert not nodes.read


def test_what_is_gone_is_forgotten() -> None:
    nodes = Nodes(a=REFUSED)
    assert nodes.say([pod("a", 1000)], 1004)
    assert nodes.say([], 1006) == {}
    assert nodes.say([pod("a", 1000)], 1008), "it is new again"
    assert nodes.read == ["a", "a"]
