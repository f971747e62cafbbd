# SPDX-License-Identifier: MIT
"""Flux CLI plugin: `--burst` for flux submit, run, alloc, batch and bulksubmit.

It asks the daemon how jobs come to it on this instance, and submits accordingly: held,
into the queue for burst jobs, or plainly where the scheduler is sched-burst.
"""

import errno
import math
import re
import sys

import flux
from flux.cli.plugin import CLIPlugin
from flux.util import parse_fsd

_ASK_S = 10.0
_ANY = "any"
_OPTIONS = ("burst", "burst_max_price", "burst_mode", "burst_wait", "burst_where")
_HELD = ("hold", "0")
_URGENCIES = {"default": 16, "expedite": 31}


class BurstPlugin(CLIPlugin):
    """Let a job run on nodes that are lent to this instance when it needs them.

    flux submit --burst -N4 app          on its own nodes, or on lent ones
    flux submit --burst=gke -N4 app      lent ones of the provider gke only
    flux submit --burst --burst-wait=0 -N4 app      on lent nodes only
    flux submit --burst --burst-mode=isolated -N4 app       or in an instance elsewhere

    `flux jobs -o burst` tells how far the nodes are, and `flux burst explain JOBID`
    why a job waits.
    """

    def __init__(self, prog):
        super().__init__(prog, prefix=None)
        self._answer = None
        self.add_option(
            "--burst",
            nargs="?",
            const=_ANY,
            metavar="PROVIDER",
            help="Let the job run on lent nodes, of this provider or any",
        )
        self.add_option(
            "--burst-max-price",
            metavar="PRICE",
            help="Pay at most so much for a node and hour",
        )
        self.add_option(
            "--burst-mode",
            choices=["joined", "isolated"],
            help="Have the nodes join this instance, or be one of their own that runs"
            " the job; default: as their provider does",
        )
        self.add_option(
            "--burst-wait",
            metavar="FSD",
            help="Try the instance's own nodes so long first; 0: lent nodes only",
        )
        self.add_option(
            "--burst-where",
            choices=["together", "spread"],
            help="Take one burst, or several if there is none large enough",
        )

    def preinit(self, args):
        burst = _given(args, "burst")
        for option in _OPTIONS:
            # flux bulksubmit hands modify_jobspec only what was set on its args.
            setattr(args, option, _given(args, option))
        if burst is None:
            for option in _OPTIONS:
                if _given(args, option) is not None:
                    name = option.replace("_", "-")
                    raise ValueError(f"--{name} goes with --burst: add --burst")
            return
        if self.prog == "alloc" and _given(args, "burst_mode") == "isolated":
            raise ValueError(
                "--burst-mode=isolated: flux alloc wants nodes here; for a shell there:"
                " burst request --isolated"
            )
        site = self._site()
        _check_provider(burst, site)
        if site["mode"] == "queue":
            self._into_queue(args, site)
        elif _is_to_be_held(args, site) and args.urgency not in _HELD:
            # Kept, since modify_jobspec puts it where the daemon finds it.
            args.burst_urgency = _URGENCIES.get(args.urgency) or int(args.urgency)
            args.urgency = "hold"

    def modify_jobspec(self, args, jobspec):
        burst = _given(args, "burst")
        if burst is None:
            return
        wish = {
            "provider": None if burst == _ANY else burst,
            "max-price": _price(_given(args, "burst_max_price")),
            "where": _given(args, "burst_where"),
            "mode": _given(args, "burst_mode"),
            "wait": _wait(_given(args, "burst_wait")),
            "urgency": _given(args, "burst_urgency"),
        }
        wish = {key: value for key, value in wish.items() if value is not None}
        site = self._site()
        jobspec.setattr(site["attribute"], True)
        jobspec.setattr("burst", wish)
        if wish.get("wait") == 0 and site["mode"] != "queue":
            _keep_to(jobspec, site["property"])

    def _into_queue(self, args, site):
        """Send the job to the queue that holds jobs until their nodes are online."""
        queue = site["queue"]
        if _given(args, "queue") not in (None, queue):
            raise ValueError(
                f"--queue={args.queue}: on this instance burst jobs go through queue"
                f" {queue}; leave --queue out"
            )
        if _given(args, "requires"):
            raise ValueError(
                "--requires: on this instance a burst job changes its queue, which"
                " Flux allows only without constraints of its own; leave --requires"
                " out"
            )
        if _wait(_given(args, "burst_wait")):
            raise ValueError(
                "--burst-wait: on this instance burst jobs run on lent nodes only;"
                " leave it out"
            )
        args.queue = queue

    def _site(self):
        """Return what the daemon says of how jobs come to it."""
        if self._answer is None:
            try:
                handle = flux.Flux()
                self._answer = handle.rpc("burst.intake", {}).wait_for(_ASK_S).get()
            except OSError as error:
                if error.errno != errno.ENOSYS:
                    raise ValueError(
                        f"--burst: cannot ask the daemon: {error}"
                    ) from None
                self._answer = _NO_DAEMON
                sys.stderr.write(
                    "warning: no burst daemon serves this instance now; the job is"
                    " held until one does (burst daemon)\n"
                )
        return self._answer


# Held, a job harms nobody, and whatever the mode of the daemon is, it will find it.
_NO_DAEMON = {
    "mode": "hold",
    "attribute": "burstable",
    "property": "burst",
    "providers": None,
}


def _given(args, name):
    """Return an option, None if it is not there at all."""
    return getattr(args, name, None)


def _is_to_be_held(args, site):
    """Tell whether the scheduler must not see the job: it might start it."""
    return site["mode"] == "hold" or _given(args, "burst_mode") == "isolated"


def _check_provider(name, site):
    known = site["providers"]
    if name == _ANY or known is None or name in known:
        return
    there = ", ".join(known) or "none"
    raise ValueError(
        f"--burst={name}: there is no such provider; there are: {there}"
        " (--burst alone takes any of them; where the command follows it, write"
        " --burst=any)"
    )


def _price(text):
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        raise ValueError(f"--burst-max-price={text}: not a price, such as 0.75")
    return float(text)


def _wait(text):
    if text is None:
        return None
    try:
        seconds = float(parse_fsd(text))
    except ValueError:
        raise ValueError(
            f"--burst-wait={text}: not a duration, such as 0, 90s, 10m"
        ) from None
    if not math.isfinite(seconds):
        raise ValueError(
            f"--burst-wait={text}: it has to end, such as 10m; a job that is never to"
            " burst goes without --burst"
        )
    return seconds


def _keep_to(jobspec, name):
    """Add a property to the job's constraints."""
    system = jobspec.attributes["system"]
    constraint = {"properties": [name]}
    old = system.get("constraints")
    jobspec.setattr("constraints", {"and": [old, constraint]} if old else constraint)
