# SPDX-License-Identifier: MIT
"""A simulated daemon and a guest, for tests that ask its service."""

import json
from concurrent.futures import Future
from typing import Any

from burst.lead import ServiceRequest
from burst.runtime.service_answers import describe_process
from burst.runtime.service_api import ServiceApi
from tests.sim import Sim

GUEST = 1234


class Asking:
    """A simulated daemon that ticks as soon as it is woken."""

    def __init__(self, **tables):
        self.sim = Sim(**tables)
        self.sim.tick(2)
        self.reloads = 0
        served_by = describe_process(self.sim.now, "/site/burst.toml")
        self.api = ServiceApi(
            lambda: self.sim.engine, self.tick, self.reload, served_by
        )

    def tick(self):
        self.sim.tick()

    def reload(self):
        self.reloads += 1
        future: Future[dict[str, Any]] = Future()
        future.set_result({"changed": [], "late": []})
        return future

    def ask(self, method, guest=False, **payload):
        return self.send(GUEST if guest else 0, method, payload)

    def send(self, userid, method, payload):
        """Ask as a user by number; 0 is the instance owner."""
        request = ServiceRequest(method, payload, userid, userid == 0)
        answer = self.api.answer(request)
        assert json.loads(json.dumps(answer)) == answer
        return answer
