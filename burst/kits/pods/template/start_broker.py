# SPDX-License-Identifier: MIT
"""Lines for sh that start a broker and pass SIGTERM on to it."""

from __future__ import annotations

_TOLD_TO_END = 143


def start_broker(command: str, *, replaced: bool = True) -> str:
    """Return lines for sh that run the broker.

    The shell passes SIGTERM on, and exits with the broker's status. On SIGTERM a broker
    exits with 0, which would complete its Job: the eviction of one pod would end the
    burst. So with `replaced` the status is then 143 (128 plus SIGTERM), and the Job
    makes another pod, unless the Job is being deleted, as when we end the burst.
    """
    told = f'    test "$status" != 0 || status={_TOLD_TO_END}\n' if replaced else ""
    return f"""\
{command} &
broker=$!
stopped=
# More signals are ignored: with each one a shell may lose the broker's exit status.
trap 'stopped=1; trap "" TERM; kill -TERM "$broker" 2> /dev/null || :' TERM
status=0
wait "$broker" || status=$?
if test "$stopped"; then
    # The signal ended wait, or came just after it: then there is nothing to wait for.
    again=0
    wait "$broker" 2> /dev/null || again=$?
    test "$again" = 127 || status=$again
{told}fi
exit "$status"
"""
