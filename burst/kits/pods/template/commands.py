# SPDX-License-Identifier: MIT
"""`commands` of the settings: shell commands that run before and after the broker.

Each text is run by a shell of its own, so what it sets, such as `set -x`, does not
affect the lines that start the broker. Its output goes to the container's log, except
lines with the secret key, as the commands run as the user who may read the key.
"""

from __future__ import annotations

import shlex

from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.mount_paths import SECRET_PATH
from burst.kits.pods.template.pod import CERTIFICATE

PRE_FAILED = "commands.pre ended with exit status "
"""How the last line of a log begins if the broker was not started because of it."""
_TOLD_TO_END = 143
_HIDDEN = "(a line with the secret key)"

# Processes that the commands leave running may keep the output open, so the loop ends
# at a marker line, not at the end of the output. Its exit status is that of the
# commands.
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

    They also define the functions that `start_broker` needs; empty without commands.
    `certificate` is the path of the certificate whose secret key is hidden.
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

    The shell passes SIGTERM on, and exits with the broker's status. On SIGTERM a broker
    exits with 0, which would complete its Job: the eviction of one pod would end the
    burst. So with `replaced` the status is then 143 (128 plus SIGTERM), and the Job
    makes another pod, unless the Job is being deleted, as when we end the burst.
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
