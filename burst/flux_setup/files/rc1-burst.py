# SPDX-License-Identifier: MIT
"""For flux modprobe rc1: have the lead schedule by sched-burst, if it is told to.

`[burst] scheduler = true` in the lead's configuration tells it. A choice by
`[modules] alternatives.sched` would not do: followers read the same configuration, and
end where a module that it names is not installed.

Where Fluxion is installed, too, its modules are left out: modprobe has taken up what
they require before it reads this, and two schedulers cannot have the resources.
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
