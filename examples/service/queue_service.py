# SPDX-License-Identifier: MIT
"""A small RESTful service of a Flux instance, in a container beside its broker.

    export FLUX_URI=local:///burst/socket/broker/local TOKEN=...
    flux python queue_service.py 5000

    GET  /v1/queue      {"nodes": 2, "jobs": {"run": 1, "sched": 3}}
    GET  /v1/jobs/ID    {"id": "f...", "state": "INACTIVE", "exit_status": 0}
    POST /v1/jobs       {"command": ["hostname"], "nodes": 2}  ->  201 {"id": "f..."}

Each request needs `Authorization: Bearer TOKEN`: who may submit jobs here may do what
the instance's owner may. It needs Flux's Python and nothing else.
"""

import hmac
import json
import os
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import flux
import flux.job
from flux.resource import list as resources

LONGEST = 1 << 16


class Handler(BaseHTTPRequestHandler):
    """One request. The broker may not be there yet, or be started again."""

    timeout = 10

    def do_GET(self):
        """Answer with the state of the queue, or of one job."""
        self.answer(self.get)

    def do_POST(self):
        """Submit a job."""
        self.answer(self.post)

    def answer(self, method):
        """Send what the method returns, or why it returns nothing."""
        given = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(given, f"Bearer {os.environ['TOKEN']}".encode()):
            self.send(
                HTTPStatus.UNAUTHORIZED, {"error": "send Authorization: Bearer TOKEN"}
            )
            return
        try:
            handle = flux.Flux()
        except OSError as error:
            words = f"the broker is not there: {error}"
            self.send(HTTPStatus.SERVICE_UNAVAILABLE, {"error": words})
            return
        try:
            self.send(*method(handle))
        except OSError as error:
            self.send(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)})
        except (KeyError, TypeError, ValueError) as error:
            self.send(HTTPStatus.BAD_REQUEST, {"error": f"{error!r}"})

    def get(self, handle):
        """Return the status and the body of a GET."""
        if self.path == "/v1/queue":
            stats = handle.rpc("job-list.job-stats", {}).get()["job_states"]
            states = {name: n for name, n in stats.items() if n and name != "total"}
            nodes = resources.resource_list(handle).get().up.nnodes
            return HTTPStatus.OK, {"nodes": nodes, "jobs": states}
        start, _, name = self.path.rpartition("/")
        if start != "/v1/jobs":
            return HTTPStatus.NOT_FOUND, {
                "error": "there are /v1/queue and /v1/jobs/ID"
            }
        job = flux.job.get_job(handle, flux.job.JobID(name))
        if job is None:
            return HTTPStatus.NOT_FOUND, {"error": f"no job {name}"}
        status = job["returncode"] if job["state"] == "INACTIVE" else None
        found = {"id": name, "state": job["state"], "exit_status": status}
        return HTTPStatus.OK, found

    def post(self, handle):
        """Return the status and the body of a POST."""
        length = int(self.headers.get("Content-Length", 0))
        if self.path != "/v1/jobs" or length > LONGEST:
            return HTTPStatus.NOT_FOUND, {"error": f"POST /v1/jobs, {LONGEST} bytes"}
        asked = json.loads(self.rfile.read(length))
        nodes = int(asked.get("nodes", 1))
        spec = flux.job.JobspecV1.from_command(
            asked["command"], num_tasks=nodes, num_nodes=nodes
        )
        spec.cwd = "/tmp"  # noqa: S108  of the pod alone
        spec.environment = {"PATH": os.environ["PATH"]}
        job = flux.job.submit(handle, spec)
        return HTTPStatus.CREATED, {"id": str(flux.job.JobID(job).f58plain)}

    def send(self, status, body):
        """Send an answer."""
        text = json.dumps(body).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


if __name__ == "__main__":
    ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
