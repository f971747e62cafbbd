# SPDX-License-Identifier: MIT
"""Gives a held job the result of its run in another instance, as if it had run here.

Flux has no request for that. Its job manager takes any event for an active job from the
instance owner, by `job-manager.post-event.post` (flux-core 0.61 or later, the command
`flux post-job-event`), and its state machine (RFC 21) follows the events:

* `set-flags` with `alloc-bypass`: no scheduler is asked for the job's resources, nor
  told of them, from here on;
* `prolog-start`: in state RUN, no start request is sent while a prolog is running;
* `alloc`: from SCHED to RUN. dependency-after needs it of a job that has to succeed;
* `start`, then `finish` with the wait status, the job's result: to CLEANUP;
* `release`: from now on the output is read from the job's own directory in the KVS;
* `free`, `prolog-finish`: nothing is left to clean up, and the job is INACTIVE.

A job without an allocation has no R, so the journal leaves out its `alloc`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from burst.decode import from_plain
from burst.errors import MALFORMED, JobspecError, LeadError
from burst.flux.rpc import Query, RequestFailed, RpcClient, ServiceMissing
from burst.flux.store import NAMESPACE, kvs_operation
from burst.model.event import Event
from burst.model.job_end import is_fatal
from burst.model.jobid import JobId
from burst.model.request import unreadable

POST = "job-manager.post-event.post"
_PROLOG = "burst-isolated"
"""The description that tells our prolog from others."""
# From SCHED, these make the job wait for a priority again.
_BACK = ("urgency", "jobspec-update", "flux-restart")
_Step = tuple[str, Mapping[str, Any]]
_BEGIN: tuple[_Step, ...] = (
    ("set-flags", {"flags": ["alloc-bypass"]}),
    ("prolog-start", {"description": _PROLOG}),
)
_CLOSE: _Step = ("prolog-finish", {"description": _PROLOG, "status": 0})


def finish_job(client: RpcClient, job: JobId, exit_status: int, output: str) -> bool:
    """Give a held job this exit status, 0 to 255, and its output.

    Returns False if that is not possible, and the job has to be ended by an exception:
    it is not held, its events cannot be read, its Flux is older than 0.61, or the
    instance has scripts that run before or after each job, which need an allocation. An
    earlier attempt that a crash interrupted is completed. Raises LeadError if the job
    is gone, Unreadable.
    """
    try:
        events = _read_events(client, job)
    except JobspecError:
        return False  # such as for a memo of its user that nests too deeply
    begun = _is_begun(events)
    if any(map(is_fatal, events)):
        # The job stays in CLEANUP while our prolog is open.
        _post(client, job, [_CLOSE] if begun else [])
        return True
    if _has_scripts(client) or not (begun or _is_held(events)):
        return False
    if not begun:
        _write_output(client, job, output)
        try:
            _post(client, job, _BEGIN)
        except (RequestFailed, ServiceMissing):
            return False
        # Its user may have released the job before it began to bypass the scheduler.
        held = False
        with suppress(JobspecError):  # they may have become unreadable meanwhile
            held = _is_held(_read_events(client, job))
        if not held:
            _post(client, job, [_CLOSE])
            return False
    _post(client, job, _end(exit_status))
    return True


def _is_held(events: Sequence[Event]) -> bool:
    """Tell whether a job is in state SCHED with no request to the scheduler."""
    held = False
    for event in events:
        if event.name == "priority":
            held = event.context["priority"] == 0
        elif event.name in (*_BACK, "alloc"):
            held = False
    return held and not any(map(is_fatal, events))


def _end(exit_status: int) -> list[_Step]:
    """Return the events that take a job from SCHED to INACTIVE, after those of _BEGIN.

    Events that were posted before a restart of the job manager are posted again, as its
    plugins do not know them any more; this does not change the states.
    """
    return [
        ("alloc", {"bypass": True}),
        ("start", {}),
        ("finish", {"status": exit_status << 8}),
        ("release", {"ranks": "all", "final": True}),
        ("free", {}),
        _CLOSE,
    ]


def _is_begun(events: Sequence[Event]) -> bool:
    """Tell whether our prolog is open. After an attempt that was given up it is not."""
    ours = [e.name for e in events if e.context.get("description") == _PROLOG]
    return ours.count("prolog-start") > ours.count("prolog-finish")


def _has_scripts(client: RpcClient) -> bool:
    """Tell whether perilog.so would run scripts for the job, for which it needs R."""
    table = client.ask("config.get").get("job-manager", {})
    return any(name in table for name in ("prolog", "epilog"))


def _read_events(client: RpcClient, job: JobId) -> list[Event]:
    """Return all events of an active job up to now. Raises LeadError, JobspecError."""
    request = {"id": job, "attrs": ["eventlog"]}
    try:
        found = client.ask("job-manager.getattr", request)["eventlog"]
        events = from_plain(found, list[Event])
    except MALFORMED as error:
        raise unreadable("eventlog", error) from error
    if any(event.name == "clean" for event in events):
        raise LeadError("job is inactive")
    return events


def _post(client: RpcClient, job: JobId, steps: Sequence[_Step]) -> None:
    """Post these events at once, in order. Raises the first error."""
    queries: list[Query] = [
        (POST, {"id": job, "name": name, "context": context}) for name, context in steps
    ]
    client.ask_each(queries)


def _write_output(client: RpcClient, job: JobId, output: str) -> None:
    """Write what `flux job attach` reads: output (RFC 24), the shell's log (RFC 32)."""
    stream = {"stream": "stdout", "rank": "0"}
    counts = {"stdout": 1, "stderr": 1}
    encodings = {"stdout": "UTF-8", "stderr": "UTF-8"}
    header = {"version": 1, "encoding": encodings, "count": counts, "options": {}}
    logs: dict[str, list[_Step]] = {
        "guest.output": [
            ("header", header),
            ("data", {**stream, "data": output}),
            ("data", {**stream, "eof": True}),
        ],
        "guest.exec.eventlog": [
            ("shell.init", {"leader-rank": 0, "size": 1, "service": _PROLOG}),
            ("done", {}),
        ],
    }
    if not output:
        del logs["guest.output"][1]
    directory = _directory(job)
    operations = [
        kvs_operation(f"{directory}.{key}", _eventlog(steps))
        for key, steps in logs.items()
    ]
    client.ask("kvs.commit", {"namespace": NAMESPACE, "flags": 0, "ops": operations})


def _directory(job: JobId) -> str:
    """Return the job's directory in the KVS, flux_job_kvs_key(3)."""
    digits = f"{job:016x}"
    return ".".join(("job", *(digits[at : at + 4] for at in range(0, 16, 4))))


def _eventlog(steps: Sequence[_Step]) -> bytes:
    """Return an eventlog (RFC 18)."""
    events = (Event(time.time(), name, dict(context)) for name, context in steps)
    return "".join(f"{event.line()}\n" for event in events).encode()
