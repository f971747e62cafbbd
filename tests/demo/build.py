# SPDX-License-Identifier: MIT
"""Jobs and bursts as a demo sees them."""

from burst.demo.scene import JobSeen
from burst.model.jobid import JobId

TIMELINE = {
    "submit": 0.0,
    "hold": 0.01,
    "provision": 0.02,
    "joined": 0.5,
    "online": 0.75,
    "released": 0.75,
    "started": 0.875,
    "finished": 1.0,
    "drained": 3.0,
    "reaped": 3.5,
}


def seen(number, state="run", **changes):
    """A job, submitted as many seconds after the epoch as its number."""
    fields = {"nodes": 2, "t_submit": float(number), **changes}
    return JobSeen(id=JobId(number), state=state, **fields)


def burst_row(slot=0, nodes=4, until="reaped", **changes):
    """A row of `burst status --json`, of a burst that came to that stage."""
    stages = list(TIMELINE)
    reached = stages[: stages.index(until) + 1]
    done = until == "reaped"
    first = 2 + 4 * slot
    return {
        "id": f"burst-{slot}-abcdef",
        "provider": "local",
        "state": "inactive" if done else "online",
        "nodes": nodes,
        "online": 0 if done else nodes,
        "ranks": f"{first}-{first + nodes - 1}",
        "jobs": ["ƒ2"],
        "result": "completed" if done else None,
        "note": "",
        "t_submit": 2.0,
        "timeline": {stage: TIMELINE[stage] for stage in reached},
        **changes,
    }
