# SPDX-License-Identifier: MIT
"""A listing of commands, each of which runs as a job in an isolated burst.

The format is that of a MiniCluster with `batch: true`: a line has the arguments of
`flux submit`, with its options first, and is read by a shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from burst.errors import ConfigError

# All are submitted before any is waited for. `--quiet` in a line hides its job from
# `flux job attach`, but not from `flux job wait`.
_BEGIN = """\
#!/bin/sh
cd /tmp
made="$0.jobs" status=0
: > "$made"
worse() {
    test "$1" -le "$status" || status=$1
}
submit() {
    # In a shell of its own: one line with an error in it does not end the others.
    jobs=$(eval "flux submit --flags=waitable $1" < /dev/null) || {
        worse $?
        echo "not submitted: $1" >&2
    }
    for job in $jobs; do
        printf '%s\\t%s\\n' "$job" "$1" >> "$made"
    done
}
"""
_END = """\
while IFS='\t' read -r job line; do
    echo "== $line"
    flux job attach "$job" < /dev/null || worse $?
done < "$made"
flux job wait --all || worse 1
exit "$status"
"""


def parse_listing(content: bytes) -> tuple[str, ...]:
    """Return the lines of a listing without blank lines and comments.

    A comment is a line that begins with `#`. Raises ConfigError if no line is left, or
    if the content is not UTF-8 or has a zero byte, which no command can have.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"line {number} of the listing is not UTF-8",
            "it is to be a text file, such as iconv -f latin1 -t utf-8 makes",
        ) from error
    if "\0" in text:
        raise ConfigError("the listing has a zero byte", "it is to be a text file")
    lines = (line.strip() for line in text.split("\n"))
    found = tuple(line for line in lines if line and not line.startswith("#"))
    if not found:
        raise ConfigError(
            "the listing has no command",
            "write one on each line: what follows flux submit, such as -N2 hostname",
        )
    return found


def listing_script(lines: Iterable[str]) -> str:
    """Return the script that runs each line as a job, for the lead of an instance.

    The script prints the output of all jobs in the order of their lines. Its exit
    status is the highest of the jobs' exit statuses, and not 0 if a job could not be
    submitted.
    """
    submitted = (f"submit {shlex.quote(line)}\n" for line in lines)
    return _BEGIN + "".join(submitted) + _END
