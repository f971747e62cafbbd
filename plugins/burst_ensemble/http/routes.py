# SPDX-License-Identifier: MIT
"""Ensembles over HTTP: show their state, submit jobs, resize and end members.

    GET  /ensembles           {"ensembles": [...]}, as `burst ensemble status --json`
    GET  /ensembles/NAME      the same for one ensemble
    POST /ensembles/NAME      {"action": "submit", "member": "md", "jobs": "step"}

The actions are those of the commands: `submit` (member, jobs, count), `resize` (member,
nodes) and `down` (note).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burst.decode import from_json
from burst.errors import MALFORMED, BurstError, ConfigError
from burst.http.routes import (
    HttpRequest,
    HttpResponse,
    Route,
    json_response,
    text_response,
)
from burst.runtime.daemon_state import DaemonState
from burst_ensemble.runtime.package import NAME, EnsemblePackage
from burst_ensemble.runtime.service import EnsembleService

_BODY_MOST = 1 << 16
_ACTIONS = ("submit", "resize", "down")


class RequestRefused(BurstError):
    """A request that cannot be met; `status` is that of the HTTP answer."""

    def __init__(self, status: int, what: str, advice: str = "") -> None:
        super().__init__(what, advice)
        self.status = status


def ensemble_routes(state: DaemonState) -> list[Route]:
    """Return the routes for the ensembles of a daemon."""
    name, show = "/ensembles/{name}", answer_by(state, _show, 404)
    act = answer_by(state, _act, 409)
    return [
        Route(path="/ensembles", handler=show),
        Route(path=name, handler=show),
        Route(path=name, handler=act, method="POST", body_limit=_BODY_MOST),
    ]


def answer_by(
    state: DaemonState,
    ask: Callable[[EnsembleService, HttpRequest], Any],
    refused: int,
) -> Callable[[HttpRequest], HttpResponse]:
    """Return a handler that has the service answer requests, in JSON.

    `refused` is the HTTP status for a BurstError; RequestRefused has its own.
    """

    def answer(request: HttpRequest) -> HttpResponse:
        served = state.served
        if served is None:
            return text_response(state.why_not_ready(), 503)
        package = served.packages[NAME]
        assert isinstance(package, EnsemblePackage)
        try:
            package.check_here()
            return json_response(ask(package.service, request))
        except RequestRefused as error:
            return text_response(str(error), error.status)
        except BurstError as error:
            return text_response(str(error), refused)

    return answer


def _show(service: EnsembleService, request: HttpRequest) -> dict[str, Any]:
    return service.answer("ensemble-status", {"name": request.name})


def _act(service: EnsembleService, request: HttpRequest) -> dict[str, Any]:
    try:
        asked = from_json(request.body, dict[str, Any])
        action = asked.pop("action", None)
        if action not in _ACTIONS:
            advice = f"it is one of {', '.join(_ACTIONS)}"
            raise RequestRefused(400, f"there is no action {action!r}", advice)
        return service.answer(f"ensemble-{action}", {**asked, "name": request.name})
    except MALFORMED as error:
        what = f"the body is not a JSON object: {error}"
        raise RequestRefused(400, what, 'such as {"action": "down"}') from error
    except ConfigError as error:
        raise RequestRefused(400, error.what, error.advice) from error
