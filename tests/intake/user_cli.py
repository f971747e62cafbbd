# SPDX-License-Identifier: MIT
"""The flux commands of a user, at a real instance that has loaded our files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from tests.flux_instance import FLUX, FluxInstance
from tests.support.forked import run_program
from tests.support.waiting import HANG_S, wait_until

FILES = Path(str(files("burst"))) / "flux_setup" / "files"
SCHEDULER = str(FILES / "sched-burst.py")
FROBNICATOR = str(FILES / "frob-burst.py")


class CommandOutput(str):
    """Standard output, stripped; with the status and what went to standard error."""

    status: int
    error: str


class UserCli:
    """The flux commands that a user runs at one instance."""

    def __init__(self, instance: FluxInstance) -> None:
        self.instance = instance
        self.extra: dict[str, str] = {}

    def ask(self, script: str, topic: str, payload: str) -> CommandOutput:
        """Have a script in Flux's Python send a request, payload by standard input."""
        return self.type("python", "-c", script, topic, stdin=payload)

    def type(self, *words: str, guest: bool = False, stdin: str = "") -> CommandOutput:
        """Run `flux WORDS` and return what it said, whether it succeeded or not."""
        plain = {k: v for k, v in os.environ.items() if not k.startswith("FLUX_")}
        environment = {
            **plain,
            "FLUX_URI": self.instance.uri,
            "FLUX_CLI_PLUGINPATH_OVERRIDE": str(FILES),
            **self.extra,
        }
        if guest:
            environment |= {
                "FLUX_HANDLE_ROLEMASK": "0x2",
                "FLUX_HANDLE_USERID": "1234",
            }
        directory = self.instance.directory
        done = run_program([FLUX, *words], environment, directory, stdin=stdin)
        said = CommandOutput(done.stdout.strip())
        said.status, said.error = done.returncode, done.stderr.strip()
        return said

    def do(self, *words: str) -> str:
        """Run `flux WORDS`, which must succeed, and return its output."""
        said = self.type(*words)
        assert said.status == 0, (words, said, said.error)
        return said

    def submit(self, *words: str) -> str:
        """Submit a job and return its id."""
        return self.do("submit", *words)

    def spec(self, *words: str) -> Any:
        """Return the jobspec of `flux submit WORDS`."""
        return json.loads(self.do("submit", "--dry-run", *words))

    def submit_spec(self, spec: Any, constraint: Any) -> CommandOutput:
        """Submit a jobspec with that constraint, past the CLI."""
        spec["attributes"]["system"]["constraints"] = constraint
        return self.type("job", "submit", stdin=json.dumps(spec))

    def ended(self, *jobs: str) -> None:
        """Wait until these jobs are inactive."""
        for job in jobs:
            self.do("job", "wait-event", f"-t{HANG_S:.0f}", job, "clean")

    def event(self, job: str, name: str) -> str:
        """Wait for an event of a job; return its line, time first."""
        return self.do("job", "wait-event", f"-t{HANG_S:.0f}", job, name)

    def when(self, job: str, name: str) -> float:
        """Wait for an event of a job; return when it happened."""
        return float(self.event(job, name).split()[0])

    def state(self, job: str) -> str:
        """Return the state of a job, such as SCHED."""
        return self.do("jobs", "-no", "{state}", job)

    def hosts(self, job: str) -> str:
        """Return where a job ran, as a hostlist."""
        return self.do("jobs", "-no", "{nodelist}", job)

    def system(self, job: str) -> Any:
        """Return `attributes.system` of a job."""
        spec = json.loads(self.do("job", "info", job, "jobspec"))
        return spec["attributes"]["system"]

    def move(self, job: str, queue: str) -> None:
        """Move a job to a queue; wait until job-info, which reads the KVS, shows it."""
        self.do("update", job, f"queue={queue}")
        wait_until(lambda: self.system(job).get("queue") == queue, f"queue {queue}")

    def constraint(self, job: str) -> Any:
        """Return the constraint of a job; None if it has none."""
        return self.system(job).get("constraints")

    def use_scheduler(self, *arguments: str) -> None:
        """Put our scheduler in the place of the shipped one."""
        use_scheduler(self.instance, *arguments)

    def reload_scheduler(self) -> None:
        """Take our scheduler away, and load it again."""
        self.do("module", "remove", "sched-burst")
        self.do("module", "load", SCHEDULER)

    def stats(self) -> Mapping[str, Any]:
        """Return what our scheduler counts. All it was sent before is done by then."""
        answer: dict[str, Any] = self.instance.rpc("sched-burst.stats-get", {})
        return answer


def use_scheduler(instance: FluxInstance, *arguments: str) -> None:
    """Put our scheduler in the place of the shipped one."""
    instance.flux("module", "remove", "sched-simple")
    instance.flux("module", "load", SCHEDULER, *arguments)
