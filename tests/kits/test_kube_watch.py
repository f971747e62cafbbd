# SPDX-License-Identifier: MIT
"""When a watch is trusted, and when all is listed again."""

import select
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import urllib3

from burst.errors import Refused, Transient
from burst.kits.kube.api_stream import ApiStream
from burst.kits.kube.kinds import POD, Selection
from burst.kits.kube.watched_kind import Changes, WatchedKind
from tests.kits.kubeserver import Said, Watch, as_line, cluster_of
from tests.support.set_clock import SetClock
from tests.support.waiting import HANG_S, wait_until

PODS = "/api/v1/namespaces/far/pods"
FORBIDDEN = 403, {"kind": "Status", "reason": "Forbidden", "message": "cannot watch"}


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class Pod(msgspec.Struct):
    metadata: Meta

    @property
    def version(self) -> str:
        return self.metadata.resource_version


class Watcher:
    """What is known of the pods, and what the API server was asked for."""

    def __init__(self, server: Said) -> None:
        self.server = server
        self.clock = SetClock(1000.0)
        selected = Selection(POD, "far", {"x": "y"})
        self.kind = WatchedKind(cluster_of(server), selected, Pod, self.clock)
        self.pods: dict[str, str] = {}

    def read(self) -> Changes[Pod]:
        changes = self.kind.changes()
        if changes.listed is not None:
            self.pods = {pod.metadata.name: pod.metadata.uid for pod in changes.listed}
        for exists, pod in changes.later:
            if exists:
                self.pods[pod.metadata.name] = pod.metadata.uid
            else:
                del self.pods[pod.metadata.name]
        return changes

    def wait(self, pods: dict[str, str]) -> None:
        """Read what was said, which takes its time on loopback, and lists nothing."""
        before = self.lists

        def read() -> bool:
            self.read()
            return self.pods == pods

        wait_until(read, lambda: self.pods)
        assert self.lists == before

    def wait_for_more(self) -> None:
        """Wait until something of the watch, or its end, can be read."""
        stream = self.kind._stream
        assert stream is not None
        readable, *_ = select.select([stream._socket], [], [], HANG_S)
        assert readable

    def begin(self, *pods: str, version: str = "7") -> Watch:
        """Read until a watch has begun."""
        self.serve(*pods, version=version)
        self.read()
        self.read()
        return self.watch

    def serve(self, *pods: str, version: str = "7") -> None:
        items = [pod(name) for name in pods]
        page = {"metadata": {"resourceVersion": version}, "items": items}
        self.server.answer("GET", PODS, (200, page))

    @property
    def watch(self) -> Watch:
        return self.server.watches[PODS][-1]

    @property
    def lists(self) -> int:
        return sum("watch=true" not in path for _, path, _ in self.server.asked)


def pod(name: str, uid: str = "", version: str = "8") -> dict[str, Any]:
    meta = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": version}
    return {"metadata": meta, "spec": {"containers": [{"name": "broker"}]}}


@pytest.fixture
def watcher(server: Said) -> Iterator[Watcher]:
    begun = server.watches[PODS] = []
    watcher = Watcher(server)
    yield watcher
    for watch in begun:
        watch.end(cut=True)


def test_one_that_is_read_once_only_lists(watcher: Watcher) -> None:
    watcher.serve("a")
    assert watcher.read().listed
    assert not watcher.server.watches[PODS]


def test_what_is_watched_is_not_listed_again(watcher: Watcher) -> None:
    watch = watcher.begin("a")
    assert "resourceVersion=7&" in watch.query
    assert "labelSelector=x%3Dy" in watch.query
    assert "allowWatchBookmarks=true" in watch.query
    for _ in range(5):
        assert watcher.read() == Changes(None, [])
    watch.say("ADDED", pod("b"))
    watch.say("MODIFIED", pod("a", "uid-changed"))
    watcher.wait({"a": "uid-changed", "b": "uid-b"})
    assert watcher.lists == 2


def test_an_event_may_come_in_parts(watcher: Watcher) -> None:
    watch = watcher.begin()
    line = as_line("ADDED", pod("b"))
    watch.lines.put(line[:20])
    watcher.wait_for_more()
    assert watcher.read() == Changes(None, [])
    watch.lines.put(line[20:])
    watcher.wait({"b": "uid-b"})


def test_deleted_and_made_again_under_one_name(watcher: Watcher) -> None:
    watch = watcher.begin("a")
    watch.say("DELETED", pod("a"))
    watch.say("ADDED", pod("a", "another"))
    watcher.wait({"a": "another"})
    watch.say("DELETED", pod("a", "another"))
    watcher.wait({})


@pytest.mark.parametrize("cut", [False, True])
def test_a_watch_that_ended_or_was_cut_goes_on_from_the_last_version(
    watcher: Watcher, cut: bool
) -> None:
    watch = watcher.begin("a")
    watch.say("ADDED", pod("b", version="9"))
    if not cut:
        bookmark = {"kind": "Pod", "metadata": {"resourceVersion": "50"}}
        watch.say("BOOKMARK", bookmark)
    watch.end(cut=cut)
    wait_until(lambda: watcher.read() and watcher.watch is not watch, "a watch")
    assert f"resourceVersion={9 if cut else 50}&" in watcher.watch.query
    assert watcher.pods == {"a": "uid-a", "b": "uid-b"}
    watcher.watch.say("ADDED", pod("c"))
    watcher.wait({"a": "uid-a", "b": "uid-b", "c": "uid-c"})
    assert watcher.lists == 2


EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


@pytest.mark.parametrize(
    "line",
    [as_line("ERROR", EXPIRED), b"<html>please log in</html>\n"],
    ids=["410", "no event"],
)
def test_after_an_error_all_is_listed(watcher: Watcher, line: bytes) -> None:
    watch = watcher.begin("a")
    watcher.serve("b", version="90")
    watch.say("ADDED", pod("lost"))
    watch.lines.put(line)
    wait_until(lambda: watcher.read().listed is not None, "a list")
    assert watcher.pods == {"b": "uid-b"}
    assert "resourceVersion=90&" in watcher.watch.query


def test_a_version_that_is_too_old_to_go_on_from_is_listed(watcher: Watcher) -> None:
    watch = watcher.begin("a")
    del watcher.server.watches[PODS]
    gone = 410, {"kind": "Status", "reason": "Expired", "message": "too old"}
    listed = {"metadata": {"resourceVersion": "90"}, "items": [pod("b")]}
    # Once to go on, once to begin after the list.
    watcher.server.answer("GET", PODS, gone, (200, listed), gone)
    watch.end()
    wait_until(lambda: watcher.read().listed is not None, "a list")
    assert watcher.pods == {"b": "uid-b"}


def test_what_was_not_read_for_long_and_has_ended_is_listed(watcher: Watcher) -> None:
    watch = watcher.begin("a")
    watcher.serve("b")
    watch.end()
    watcher.wait_for_more()
    watcher.clock.now += 16
    assert watcher.read().listed
    assert watcher.pods == {"b": "uid-b"}


def test_a_silent_watch_is_given_up_and_for_a_while_all_is_listed(
    watcher: Watcher,
) -> None:
    watcher.begin("a")
    watcher.clock.now += 40
    assert watcher.read().listed is None
    watcher.serve("b")
    watcher.clock.now += 1
    for _ in range(3):
        assert watcher.read().listed, "a proxy may keep what it should pass on"
    assert watcher.pods == {"b": "uid-b"}
    assert len(watcher.server.watches[PODS]) == 1
    watcher.clock.now += 600
    watcher.read()
    assert len(watcher.server.watches[PODS]) == 2
    assert watcher.read().listed is None


def test_one_that_says_something_is_not_silent(watcher: Watcher) -> None:
    watch = watcher.begin("a")
    for turn in range(5):
        watcher.clock.now += 30
        watch.say("ADDED", pod(f"b{turn}"))
        watcher.wait({"a": "uid-a", **{f"b{n}": f"uid-b{n}" for n in range(turn + 1)}})


def test_without_the_right_to_watch_all_is_listed(watcher: Watcher) -> None:
    del watcher.server.watches[PODS]
    listed = 200, {"metadata": {"resourceVersion": "7"}, "items": [pod("a")]}
    watcher.server.answer("GET", PODS, listed, listed, FORBIDDEN, listed)
    for _ in range(5):
        assert watcher.read().listed
    asked = [path for _, path, _ in watcher.server.asked]
    assert sum("watch=true" in path for path in asked) == 1
    watcher.clock.now += 60
    watcher.server.watches[PODS] = []
    watcher.read()
    assert watcher.read().listed is None


def test_what_cannot_be_read_is_raised_and_listed_later(watcher: Watcher) -> None:
    watch = watcher.begin("a")
    del watcher.server.watches[PODS]
    watcher.server.answer("GET", PODS, (503, {"kind": "Status", "message": "down"}))
    watch.say("ADDED", pod("b"))
    watch.end(cut=True)

    def raises() -> bool:
        try:
            watcher.read()
        except Transient:
            return True
        return False

    wait_until(raises, "an error")
    with pytest.raises(Transient, match="down"):
        watcher.read()
    watcher.server.answer("GET", PODS, FORBIDDEN)
    with pytest.raises(Refused):
        watcher.read()
    watcher.serve("c")
    assert watcher.read().listed
    assert watcher.pods == {"c": "uid-c"}


def test_one_that_is_given_up_leaves_no_connection(watcher: Watcher) -> None:
    watch = watcher.begin("a")
    watcher.clock.now += 41
    assert watcher.read().listed

    def lost() -> bool:
        watch.say("ADDED", pod("b"))
        return watch.lost.is_set()

    wait_until(lost, "the server to find that nobody reads")


def test_an_answer_of_a_known_length_ends_with_its_last_line(server: Said) -> None:
    """A proxy may answer a watch so."""
    server.answer("GET", PODS, (200, {"type": "BOOKMARK"}))
    with urllib3.PoolManager() as pool:
        url = f"{server.url}{PODS}"
        stream = ApiStream(pool.request("GET", url, preload_content=False))
        lines: list[bytes] = []

        def read() -> bool:
            lines.extend(stream.lines())
            return stream.ended

        wait_until(read, lambda: lines)
        assert stream.lines() == []
        stream.close()
