# SPDX-License-Identifier: MIT
"""Has flux modprobe rc1 load sched-burst on the lead, if the configuration says so.

The configuration says so by `[burst] scheduler = true`. A choice by `[modules]
alternatives.sched` would not work: followers read the same configuration, and end if it
names a module that is not installed.

If Fluxion is installed, too, its modules are disabled: modprobe has added what they
require before it reads this file, and two schedulers cannot have the resources.
"""

_FLUXION = (
    "sched-fluxion-qmanager",
    "sched-fluxion-feasibility",
    "sched-fluxion-resource",
)


def setup(context):
    if context.rank == 0 and context.conf_get("burst.scheduler"):
        context.set_alternative("sched", "sched-burst")
        for name in _FLUXION:
            if name in context.modprobe.taskdb:
                context.modprobe.disable(name)
