# SPDX-License-Identifier: MIT
"""Tries a site's program on a burst that no lead knows: `burst provider check`.

In place of a follower each node runs a script that writes the time into a file of the
shared directory, again and again, until a while after SIGTERM, as a follower that ends
its jobs. So no lead, no Flux and no certificate is needed, and the directory shows what
runs where.
"""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from burst.errors import BurstError, NotFound, ProviderError, Refused
from burst.kits.atomic_file import write_atomically
from burst.kits.job_tasks import JobTasks
from burst.kits.private_dir import disk_errors
from burst.model.finding import Finding, ok, wrong
from burst.model.lead import NO_LEAD
from burst.provider import BurstId, BurstSpec, Phase
from burst_command.protocol import LIMIT_S
from burst_command.settings import CommandSettings

if TYPE_CHECKING:
    from burst_command.provider import CommandProvider

NODES = 2
BEAT_S = 1.0
_ENDING = 5
"""Beats for which a script goes on after SIGTERM."""
_PAUSE_S = 0.5
_BURST = BurstId("burst-check-0")
_SCRIPT = """\
#!/bin/sh
# A node of a burst that `burst provider check` makes.
beat={place}/beat.$1.$(hostname).$$
end=$(($(date +%s) + {seconds}))
trap 'trap "" TERM INT HUP; end=$(($(date +%s) + {ending}))' TERM INT HUP
while [ "$(date +%s)" -lt "$end" ]; do
  date +%s > "$beat" || exit
  sleep {beat:g}
done
rm -f "$beat"
"""


class _Files(JobTasks):
    """Files of a burst whose nodes run the script, for `seconds` at most."""

    def __init__(self, place: Path, seconds: float, beat: float) -> None:
        super().__init__(place)
        self._seconds, self._beat = int(seconds), beat

    def write(self, spec: BurstSpec, flux: str, rank: str) -> None:
        """Write the script in place of a follower's files."""
        del flux, rank
        script = _SCRIPT.format(
            place=shlex.quote(str(self.place)),
            beat=self._beat,
            seconds=self._seconds,
            ending=math.ceil(_ENDING * self._beat),
        )
        with disk_errors(self.place, writing=True):
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self.place / "start", script.encode(), private=True)
        self.note_spec(spec)


class _Check:
    """The steps of a check: each raises Refused, with the rule that does not hold."""

    def __init__(
        self,
        make: Callable[[Callable[[Path], JobTasks]], CommandProvider],
        settings: CommandSettings,
        tell: Callable[[str], None],
        clock: Callable[[], float],
        beat: float,
    ) -> None:
        # How long to wait for nodes, by the time that they take according to the site.
        self._patience = 4 * settings.join_time + LIMIT_S
        # The script ends by itself if `end` does not end it: nobody else would.
        self._provider = make(partial(_Files, seconds=2 * self._patience, beat=beat))
        self._tell, self._clock, self._beat = tell, clock, beat
        [offer] = self._provider.offers()
        hosts = [f"burst-check-{number}" for number in range(NODES)]
        self._spec = BurstSpec(
            burst_id=_BURST,
            owner="check",
            offer=offer.name,
            hosts=tuple(hosts[: settings.max_nodes]),
            ranks=(),
            shape=offer.shape,
            lead=msgspec.structs.replace(NO_LEAD, owner="check"),
        )
        self._begun = False
        """Whether anything may have been made."""

    def run(self) -> Iterator[Finding]:
        steps = (
            self._nothing_at_first,
            self._listed_once_begun,
            self._runs,
            self._ends,
            self._ended_twice,
        )
        try:
            for step in steps:
                yield ok(step())
        except BurstError as error:
            advice = error.advice or "docs/command.md says what each word is to do"
            # Now, as it may take minutes to delete what is left.
            self._tell(f"wrong: {error.what}")
            yield wrong(error.what, advice)
        finally:
            if self._begun:
                yield from self._clean()

    def _nothing_at_first(self) -> str:
        if _BURST in self._provider.list_jobs():
            raise Refused(
                f"`list` lists {self._name} before it was begun",
                "`list` prints what exists, and no more",
            )
        return "`list` does not list what was not begun"

    def _listed_once_begun(self) -> str:
        self._tell(f"begins {self._name} of {len(self._spec.hosts)} nodes")
        self._begun = True
        self._provider.provision(self._spec)
        if _BURST not in self._provider.list_jobs():
            raise Refused(
                f"`list` does not list {self._name} right after `begin` has succeeded",
                "what was begun is listed from then on, until nothing of it is left",
            )
        return "`list` lists what was begun"

    def _runs(self) -> str:
        self._wait(self._is_running, f"{self._name} to run on all its nodes")
        # A second script for a host may be slower, and has written its file by then.
        self._pause()
        self._fail_if_doubled()
        return "each host's script runs once, and `list` says so"

    def _is_running(self) -> bool:
        [status] = [s for s in self._provider.observe() if s.burst_id == _BURST]
        if status.phase is Phase.FAILED:
            raise Refused(
                f"{self._name} failed: {status.why}",
                "`sh START HOST` runs until it is ended; its output is in `log`",
            )
        self._fail_if_doubled()
        everywhere = len(self._beats()) == len(self._spec.hosts)
        return status.phase is Phase.RUNNING and everywhere

    def _fail_if_doubled(self) -> None:
        beats = self._beats()
        for host in self._spec.hosts:
            if sum(beat.name.startswith(f"beat.{host}.") for beat in beats) > 1:
                raise Refused(
                    f"the script runs more than once for the host {host}",
                    "`begin` runs `sh START HOST` once for each host",
                )

    def _ends(self) -> str:
        self._tell(f"ends {self._name}")
        self._wait(self._is_gone, f"`list` to stop listing {self._name}")
        return "what was ended is listed until it is gone"

    def _is_gone(self) -> bool:
        if self._provider.end_jobs(_BURST):
            return False
        # A script that still runs writes its file again within a beat.
        for beat in self._beats():
            beat.unlink(missing_ok=True)
        self._pause()
        if self._beats():
            raise Refused(
                f"a script of {self._name} runs, though `list` does not list it any"
                " more",
                "it is listed until nothing of it runs",
            )
        return True

    def _ended_twice(self) -> str:
        self._provider.end(_BURST)
        return "`end` of what is gone succeeds"

    def _clean(self) -> Iterator[Finding]:
        """Delete what was made, by calls of the program only."""
        self._tell(f"deletes what may be left of {self._name}")
        ends = self._clock() + self._patience
        last, for_good = "", False
        while not for_good and self._clock() < ends:
            try:
                self._provider.reap(_BURST)
                last = f"`list` still lists {self._name}"
            except NotFound:
                return
            except ProviderError as error:
                last, for_good = error.what, isinstance(error, Refused)
            time.sleep(_PAUSE_S)
        yield wrong(
            f"{self._name} may be left: {last}",
            "end it by hand: its nodes may cost money",
        )

    @property
    def _name(self) -> str:
        return self._provider.name_of(_BURST)

    def _beats(self) -> Sequence[Path]:
        return list(self._provider.files(_BURST).place.glob("beat.*"))

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        self._tell(f"waits for {what}")
        ends = self._clock() + self._patience
        while not holds():
            if self._clock() > ends:
                raise Refused(
                    f"waited {self._patience:g} s in vain for {what}",
                    "set a longer join_time to wait longer",
                )
            time.sleep(_PAUSE_S)

    def _pause(self) -> None:
        time.sleep(2 * self._beat)


def check(
    make: Callable[[Callable[[Path], JobTasks]], CommandProvider],
    settings: CommandSettings,
    tell: Callable[[str], None],
    clock: Callable[[], float],
    beat: float,
) -> list[Finding]:
    """Begin, list and end a burst; return a finding for each rule that was tried.

    `make` makes a provider that uses the given files. `tell` is called with what the
    check does and waits for. Scripts write a file each `beat` seconds. If anything is
    left, a finding says what.
    """
    return list(_Check(make, settings, tell, clock, beat).run())
