# SPDX-License-Identifier: MIT
"""What a hostile guest does, run as that user: calls of the service, forged or not.

    python -m tests.multiuser.guest_calls URI MODE SEED SECONDS ID...

MODE is `random` (calls one by one, and jobs with forged attributes), `flood` (calls
without waiting for an answer, as fast as they go, until SIGTERM comes; it says so once
many were refused) or `ask` (for the status, until an answer comes within SECONDS). IDs
are of others' jobs and bursts. It prints one JSON object: how many answers had which
error number, and all texts; or how long each answer took.
"""

from __future__ import annotations

import errno
import json
import math
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import Any

from burst.flux.handle import Handle, ResponseMessage
from tests.support.waiting import HANG_S

METHODS = (
    *("ping", "intake", "status", "explain", "cost", "output", "report", "release"),
    *("request-job", "plan", "policy", "request", "down", "resize", "gc", "enable"),
    *("reload", "tagged", "ensemble-status", "ensemble-down", "holder", "nosuch"),
)
FORGED = (
    "--setattr=burst.userid=61000",
    "--setattr=burst.owner=true",
    "--setattr=burst.tag.name=x/y",
    "--setattr=burst.requester=61001",
    "--setattr=user.burst.state=released",
    "--setattr=burst.urgency=31",
    "--env=BURST_CONFIG=/etc/shadow",
)
_LEAST = 200
_IN_FLIGHT = 2000
_MANY_REFUSED = 1000
_ASKED_S = 300.0


def _answer(handle: Handle) -> ResponseMessage:
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        message = handle.receive()
        if isinstance(message, ResponseMessage):
            return message
        handle.wait(0.1)
    raise AssertionError("the daemon does not answer")


def _payload(chance: random.Random, ids: list[str]) -> dict[str, Any]:
    odd: tuple[Any, ...] = (None, -1, 2**63, [], {}, "", "x" * 4000, "ƒ\n\x1b[2J", True)
    name = chance.choice((*ids, *ids, chance.choice(odd)))
    fields = {
        "id": name,
        "ids": chance.choice(([name], ids, name)),
        "burst": name,
        "nodes": chance.choice((1, 2, -1, 2**31, name)),
        "all": True,
        "force": True,
        "userid": 61000,
        "owner": True,
        "rolemask": 1,
        "jobs": chance.choice((0, 1000, -1, name)),
        "name": name,
    }
    kept = chance.sample(sorted(fields), chance.randint(0, len(fields)))
    return {key: fields[key] for key in kept}


def call_at_random(uri: str, seed: int, seconds: float, ids: list[str]) -> Any:
    """Call one by one; submit jobs now and then."""
    chance, handle = random.Random(seed), Handle(uri)
    found: Counter[int] = Counter()
    texts: set[str] = set()
    submitted = 0
    ends = time.monotonic() + seconds
    # Fewer might have no answer of a kind that all ought to have.
    while time.monotonic() < ends or sum(found.values()) < _LEAST:
        if chance.random() < 0.02:
            attributes = chance.sample(FORGED, chance.randint(0, 3))
            nodes = f"-N{chance.randint(3, 5)}"
            command = ["flux", "submit", nodes, "--setattr=burstable", *attributes]
            done = subprocess.run([*command, "true"], check=False, capture_output=True)
            submitted += not done.returncode
            continue
        method = chance.choice(METHODS)
        handle.send(f"burst.{method}", _payload(chance, ids))
        answer = _answer(handle)
        found[answer.errnum] += 1
        text = answer.payload.decode(errors="replace")
        if answer.errnum == errno.EAGAIN:
            time.sleep(0.2)
        elif len(texts) < 2000:
            texts.add(text)
    return {"found": dict(found), "texts": sorted(texts), "submitted": submitted}


def flood(uri: str, seconds: float) -> Any:
    """Call without waiting for answers; for so many seconds at most."""
    handle, enough = Handle(uri), threading.Event()
    signal.signal(signal.SIGTERM, lambda _, __: enough.set())
    found: Counter[int] = Counter()
    waits = sent = 0
    ends = time.monotonic() + seconds
    while (goes_on := time.monotonic() < ends and not enough.is_set()) or waits:
        if goes_on and waits < _IN_FLIGHT:
            handle.send("burst.report", {})
            sent, waits = sent + 1, waits + 1
            continue
        errnum = _answer(handle).errnum
        found[errnum] += 1
        waits -= 1
        if errnum == errno.EAGAIN and found[errnum] == _MANY_REFUSED:
            sys.stdout.write("many were refused\n")
            sys.stdout.flush()
    return {"found": dict(found), "sent": sent}


def ask(uri: str, limit: float) -> Any:
    """Call until an answer comes within so many seconds."""
    handle, took = Handle(uri), [math.inf]
    ends = time.monotonic() + _ASKED_S
    while took[-1] > limit and time.monotonic() < ends:
        began = time.monotonic()
        handle.send("burst.status", {})
        answer = _answer(handle)
        assert not answer.errnum, answer.payload
        took.append(time.monotonic() - began)
    return {"took": took[1:]}


def main() -> None:
    """Do what the arguments say."""
    uri, mode, seed, seconds, *ids = sys.argv[1:]
    if mode == "flood":
        told = flood(uri, float(seconds))
    elif mode == "ask":
        told = ask(uri, float(seconds))
    else:
        told = call_at_random(uri, int(seed), float(seconds), ids)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
