# SPDX-License-Identifier: MIT
"""What is answered about ensembles, and what a program may ask for them."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from burst_ensemble.http.routes import ensemble_routes

from burst.http.routes import Access, HttpRequest
from burst.runtime.daemon_state import DaemonState
from burst.runtime.tally import Tally
from tests.plugins.ensemble.http.served import served_by
from tests.plugins.ensemble.runtime.ensemble_site import MEMBER, EnsembleSite

WRONG = {
    "body is not a JSON object": b"[1]",
    "such as {": b"\xff",
    "no action 'delete'; it is one of submit,": b'{"action": "delete"}',
    "ensemble-down: force: no such key": b'{"action": "down", "force": true}',
    "nodes: Expected whole number": b'{"action": "resize", "nodes": "two"}',
    "no action None": b"{}",
}
"""By what is answered, what is posted."""
JOBS = [{"name": "step", "command": "true", "count": 0}]
Method = Literal["GET", "POST"]
NAMED = "/ensembles/{name}"


def ask(
    state: DaemonState, method: Method, path: str, name: str = "", body: bytes = b""
) -> tuple[int, Any]:
    """Have the route of a path answer; return the status, and the text or the JSON."""
    routes = {(route.path, route.method): route for route in ensemble_routes(state)}
    route = routes[path, method]
    answer = route.handler(HttpRequest(path="", name=name, body=body))
    text = answer.body.decode()
    return answer.status, json.loads(text) if text.startswith("{") else text


@pytest.fixture
def site() -> EnsembleSite:
    site = EnsembleSite()
    site.up(members=[{**MEMBER, "jobs": JOBS}])
    return site


@pytest.fixture
def state(site: EnsembleSite) -> DaemonState:
    return served_by(site)


def test_a_program_follows_and_steers_an_ensemble(
    state: DaemonState, site: EnsembleSite
) -> None:
    def get(name: str = "sweep") -> Any:
        status, found = ask(state, "GET", NAMED, name)
        assert status == 200, found
        return found["ensembles"]

    def post(name: str = "sweep", **asked: Any) -> int:
        return ask(state, "POST", NAMED, name, json.dumps(asked).encode())[0]

    (row,) = get()
    assert row["state"] == "running"
    assert ask(state, "GET", "/ensembles") == (200, {"ensembles": [row]})
    assert ask(state, "GET", NAMED, "other")[0] == 404
    assert post(action="resize", member="a", nodes=2) == 200
    assert get()[0]["members"]["a"]["member"]["nodes"] == 2
    assert post(action="resize", member="a", nodes=9) == 409
    assert post(action="resize", member="x", nodes=1) == 409
    assert post(action="submit", member="a", jobs="step", count=2) == 200
    assert len(site.member("a").unconfirmed) == 2
    assert post("other", action="down") == 409
    assert post(action="down", note="by a program") == 200
    assert get()[0]["why"] == "by a program"


def test_all_is_the_owners(state: DaemonState) -> None:
    assert {route.access for route in ensemble_routes(state)} == {Access.OWNER}


def test_without_a_lead_it_is_said() -> None:
    assert ask(DaemonState(Tally()), "GET", "/ensembles")[0] == 503


@pytest.mark.parametrize(("said", "body"), WRONG.items())
def test_what_is_no_action_is_refused(
    state: DaemonState, said: str, body: bytes
) -> None:
    status, answer = ask(state, "POST", NAMED, "sweep", body)
    assert (status, said in answer) == (400, True), answer
