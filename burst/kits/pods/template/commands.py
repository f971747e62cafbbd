# SPDX-License-Identifier: MIT
"""`commands` of the settings: shell commands in the broker's container around it.

Each text is run by a shell of its own, so nothing that it sets, and no `set -x`, is
felt by the lines that start the broker. Its output is in the container's log, but for
lines with the secret key: commands run as the user who may read it.
"""

from __future__ import annotations

import shlex

from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.mount_paths import SECRET_PATH
from burst.kits.pods.template.pod import CERTIFICATE

PRE_FAILED = "commands.pre ended with exit status "
"""How the last line of a log begins if the broker was not started for that."""
_TOLD_TO_END = 143
_HIDDEN = "(a line with the secret key)"

# What is left running by the commands may keep their output open, so the loop ends at
# a line, not at the end of the output. Its exit status is that of the commands.
_FUNCTIONS = f"""\
show() {{
    case $1 in
    *"${{key:-secret-key}}"*) echo "{_HIDDEN}" ;;
    *) printf '%s\\n' "$1" ;;
    esac
}}
run_commands() {{
    end="commands.$1 ended with exit status "
    {{
        status=0
        /bin/sh -ec "$2" < /dev/null 2>&1 || status=$?
        echo "$end$status"
    }} | (
        while IFS= read -r line; do
            case $line in
            *"$end"*)
                text=${{line%"$end"*}} status=${{line##*"$end"}}
                test -z "$text" || show "$text"
                test "$status" = 0 || echo "$end$status"
                exit "$status"
                ;;
            esac
            show "$line"
        done
        exit 1
    )
}}
"""


def run_before(
    settings: PodSettings, certificate: str = f"{SECRET_PATH}/{CERTIFICATE}"
) -> str:
    """Return lines for sh that run `commands.pre`, and end the shell if it fails.

    What `start_broker` needs of a shell is there, too; empty without commands.
    `certificate` is the path of the one whose secret key is hidden.
    """
    commands = settings.commands
    if not (commands.pre or commands.post):
        return ""
    call = f"run_commands pre {shlex.quote(commands.pre)} || exit\n"
    hide = f"""\
key=$(sed -n 's/^ *secret-key = "\\(.*\\)"$/\\1/p' {certificate})
"""
    return hide + _FUNCTIONS + (call if commands.pre else "")


def start_broker(command: str, settings: PodSettings, *, replaced: bool = True) -> str:
    """Return lines for sh that run the broker, and `commands.post` after its end.

    The shell hands SIGTERM on, and its exit status is the broker's. On SIGTERM a broker
    ends with 0, which would complete its Job: the eviction of one pod would end the
    burst. So with `replaced` the status is 143 (128 and SIGTERM) then, and the Job
    makes another pod, unless it is being deleted, as when we end the burst.
    """
    post = settings.commands.post
    after = f"run_commands post {shlex.quote(post)} || :\n" if post else ""
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
trap : TERM
{after}exit "$status"
"""
