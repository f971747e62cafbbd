# SPDX-License-Identifier: MIT
"""Flux's Rv1Pool as an oracle: `flux python rv1pool.py` answers a line with a line.

In: {"R": …, "up": idset, "jobspecs": […]}. Out: for each jobspec, allocated one after
the other, `{"rank": [cores, gpus]}`, null if it is not free now, or "infeasible".
"""

import json
import sys
from typing import Any

from flux.resource import InfeasibleRequest, InsufficientResources, ResourcePool


def answer(pool: Any, number: int, jobspec: dict[str, Any]) -> Any:
    try:
        found = pool.alloc(number, pool.parse_resource_request(jobspec))
    except InsufficientResources:
        return None
    except InfeasibleRequest:
        return "infeasible"
    return {
        rank: [sorted(info["cores"]), sorted(info["gpus"])]
        for rank, info in found.impl._ranks.items()
    }


def main() -> None:
    for line in sys.stdin:
        case = json.loads(line)
        pool = ResourcePool(case["R"])
        pool.mark_down("all")
        if case["up"]:
            pool.mark_up(case["up"])
        answers = [answer(pool, i, spec) for i, spec in enumerate(case["jobspecs"])]
        sys.stdout.write(json.dumps(answers) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
