# SPDX-License-Identifier: MIT
"""What is answered about ensembles, and what a program may ask for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from burst_ensemble.http.routes import ensemble_routes

from burst.http.routes import HttpRequest
from burst.runtime.daemon_state import DaemonState
from tests.cli.cli_harness import CliHarness, open_harness
from tests.embedded_instance import embedded_instance
from tests.http.clients import Answer, ask, bearer
from tests.support.ports import free_port
from tests.support.waiting import wait_until

FILE = """
name = "sweep"
checkSeconds = "0.2s"

[[members]]
name = "md"
provider = "local"
min = 1
max = 3
jobs = [{ name = "step", command = "true", count = 0 }]
algorithm = [{ name = "stop", options = { disableTermination = true } }]
"""
TOKEN = "b" * 40
HEADERS = bearer(TOKEN)
WRONG = {
    "body is not a JSON object": b"[1]",
    "such as {": b"\xff",
    "body: action: unknown value 'delete'": b'{"action": "delete"}',
    'one of "submit", "resize"': b'{"action": "delete"}',
    "body: force: no such key": b'{"action": "down", "force": true}',
    "nodes: Expected whole number": b'{"action": "resize", "nodes": "two"}',
    "action is missing": b"{}",
}
"""By what is answered, what is posted."""


def written(cli: CliHarness, directory: Path) -> int:
    """Write settings with HTTP; return the port."""
    port, token = free_port(), directory / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    http = {"listen": f"127.0.0.1:{port}", "token_file": str(token)}
    cli.write(http=http)
    return port


def test_a_program_follows_and_steers_an_ensemble(tmp_path: Path) -> None:
    with embedded_instance() as instance, open_harness(instance) as cli:
        port = written(cli, tmp_path)
        file = tmp_path / "sweep.toml"
        file.write_text(FILE)

        def get(path: str = "/ensembles/sweep") -> Any:
            found = ask(port, path, headers=HEADERS)
            assert found.status == 200, found
            return json.loads(found.body)["ensembles"]

        def post(name: str = "sweep", **body: Any) -> Answer:
            text = json.dumps(body).encode()
            return ask(port, f"/ensembles/{name}", "POST", text, HEADERS)

        def has_nodes(count: int) -> None:
            def up() -> bool:
                nodes = get()[0]["members"]["md"]["nodes"]
                return bool(nodes["node_up_count"] == count)

            wait_until(up, lambda: f"{count} nodes: {get()}")

        with cli.daemon():
            assert get("/ensembles") == []
            assert ask(port, "/ensembles/sweep", headers=HEADERS).status == 404
            assert cli.run("ensemble", "up", str(file)).status == 0
            (row,) = get()
            assert row["state"] == "running"
            for stranger in ({}, bearer("c" * 40)):
                for how, body in (("GET", None), ("POST", b'{"action": "down"}')):
                    refused = ask(port, "/ensembles/sweep", how, body, stranger)
                    assert refused.status in (401, 403), refused
            assert row == {**row, **get("/ensembles")[0], "members": row["members"]}
            has_nodes(1)
            assert post(action="resize", member="md", nodes=3).status == 200
            has_nodes(3)
            assert post(action="resize", member="md", nodes=9).status == 409
            assert post(action="resize", member="x", nodes=1).status == 409
            assert ask(port, "/ensembles/sweep", "POST", b"[1]", HEADERS).status == 400
            assert post("other", action="down").status == 409

            def submitted() -> bool:
                answer = post(action="submit", member="md", jobs="step", count=2)
                assert answer.status in (200, 409), answer
                return answer.status == 200

            wait_until(submitted, "no other job to be unconfirmed")
            assert post(action="down", note="by a program").status == 200
            wait_until(lambda: get()[0]["state"] == "ended", lambda: f"{get()}")
            assert get()[0]["why"] == "by a program"


def act(state: DaemonState, body: bytes) -> tuple[int, str]:
    """Post an action, in this process."""
    posted = [route for route in ensemble_routes(state) if route.method == "POST"]
    (route,) = (each for each in posted if each.path == "/ensembles/{name}")
    answer = route.handler(HttpRequest(path="", name="sweep", body=body))
    return answer.status, answer.body.decode()


@pytest.mark.parametrize(("said", "body"), WRONG.items())
def test_what_is_no_action_is_refused(
    state: DaemonState, said: str, body: bytes
) -> None:
    status, answer = act(state, body)
    assert (status, said in answer) == (400, True), answer
