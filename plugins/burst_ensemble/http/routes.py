# SPDX-License-Identifier: MIT
"""Ensembles over HTTP: their state, and what a program may ask for them.

    GET  /ensembles           {"ensembles": [...]}, as `burst ensemble status --json`
    GET  /ensembles/NAME      the same of one
    POST /ensembles/NAME      {"action": "submit", "member": "md", "jobs": "step"}

The actions are those of the commands: `submit` (member, jobs, count), `resize` (member,
nodes), `start-broker` (member), which is to grow by one node, `down` (note), and
`save`, which writes the state into a file beside the lead's state.

`POST /ensembles-agent/ENSEMBLE.MEMBER`: the agents of members report, and are told
what to do (`burst_ensemble.core.agent_report`).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

import msgspec

from burst.config.convert import convert
from burst.decode import from_json
from burst.errors import MALFORMED, BurstError, Denied
from burst.http.routes import (
    Access,
    HttpRequest,
    HttpResponse,
    Route,
    json_response,
    text_response,
)
from burst.kits.atomic_file import write_atomically
from burst.runtime.daemon_state import DaemonState, Served
from burst_ensemble.core.agent_report import REPORT_BYTES, ReportRefused
from burst_ensemble.runtime.package import NAME, EnsemblePackage

AGENT_PATH = "/ensembles-agent/"


def package_of(served: Served) -> EnsemblePackage:
    """Return what runs a lead's ensembles."""
    package = served.packages[NAME]
    assert isinstance(package, EnsemblePackage)
    return package


def agent_route(state: DaemonState) -> Route:
    """Return the route of a daemon in that state."""

    def take(request: HttpRequest) -> HttpResponse:
        served = state.served
        if served is None:
            return text_response(state.why_not_ready(), 503)
        package, settings = package_of(served), served.snapshot().settings
        try:
            package.check_here()
            service = package.service
            answer = service.reports.take(
                request.name, request.body, service.store.read(), settings
            )
        except ReportRefused as error:
            return text_response(str(error), error.status)
        except BurstError as error:
            return text_response(str(error), 409)
        return json_response(answer)

    return Route(
        path=f"{AGENT_PATH}{{name}}",
        handler=take,
        access=Access.OWNER,
        method="POST",
        body_limit=REPORT_BYTES,
    )


_BODY_MOST = 1 << 16


class EnsembleAction(msgspec.Struct):
    """The body of a POST."""

    action: Literal["submit", "resize", "start-broker", "down", "save"]
    member: str = ""
    jobs: str = ""
    count: int = 1
    nodes: int = 0
    note: str = ""


def ensemble_routes(state: DaemonState) -> list[Route]:
    """Return the routes about ensembles of a daemon in that state."""

    def show(request: HttpRequest) -> HttpResponse:
        served = state.served
        if served is None:
            return text_response(state.why_not_ready(), 503)
        try:
            return json_response(_state_of(served, request.name))
        except BurstError as error:
            return text_response(str(error), 404)

    def act(request: HttpRequest) -> HttpResponse:
        served = state.served
        if served is None:
            return text_response(state.why_not_ready(), 503)
        try:
            asked = _read(request.body)
        except BurstError as error:
            return text_response(str(error), 400)
        try:
            return json_response(_carry_out(served, request.name, asked))
        except Denied as error:
            return text_response(str(error), 403)
        except BurstError as error:
            return text_response(str(error), 409)

    return [
        Route(path="/ensembles", handler=show),
        Route(path="/ensembles/{name}", handler=show),
        Route(
            path="/ensembles/{name}", handler=act, method="POST", body_limit=_BODY_MOST
        ),
        agent_route(state),
    ]


def _state_of(served: Served, name: str) -> dict[str, Any]:
    """Return the ensemble of that name, or all. Raises BurstError."""
    package = package_of(served)
    package.check_here()
    return package.service.answer("ensemble-status", {"name": name})


def _read(body: bytes) -> EnsembleAction:
    """Return what the body of a POST asks for. Raises BurstError."""
    try:
        table = from_json(body, dict[str, Any])
    except MALFORMED as error:
        raise BurstError(
            f"the body is not a JSON object: {error}",
            'such as {"action": "down"}',
        ) from error
    return convert(EnsembleAction, table, "body")


def _carry_out(served: Served, name: str, asked: EnsembleAction) -> dict[str, Any]:
    """Do what is asked; return the ensemble. Raises BurstError."""
    if asked.action == "save":
        return _save(served, name)
    payload = {**msgspec.to_builtins(asked), "name": name}
    method = asked.action
    if asked.action == "start-broker":
        method, payload["nodes"], payload["more"] = "resize", 1, True
    package = package_of(served)
    package.check_here()
    return package.service.answer(f"ensemble-{method}", payload)


def _save(served: Served, name: str) -> dict[str, Any]:
    """Write the state of an ensemble into a file; return its path."""
    snapshot = served.snapshot()
    found = _state_of(served, name)["ensembles"][0]
    directory = snapshot.world.identity.statedir
    if not directory:
        raise BurstError(
            "the lead keeps no state, so there is no place for the file",
            "GET /ensembles/NAME has the same",
        )
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(snapshot.now))
    path = Path(directory) / f"ensemble-{name}-{stamp}.json"
    try:
        write_atomically(path, msgspec.json.encode(found), private=True)
    except OSError as error:
        raise BurstError(f"{path} cannot be written: {error}") from error
    return {"file": str(path)}
