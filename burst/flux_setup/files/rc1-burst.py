# SPDX-License-Identifier: MIT
"""For flux modprobe rc1: have the lead schedule by sched-burst, if it is told to.

`[burst] scheduler = true` in the lead's configuration tells it. A choice by
`[modules] alternatives.sched` would not do: followers read the same configuration, and
end where a module that it names is not installed.
"""


def setup(context):
    if context.rank == 0 and context.conf_get("burst.scheduler"):
        context.set_alternative("sched", "sched-burst")
