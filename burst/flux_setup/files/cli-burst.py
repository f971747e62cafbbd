# SPDX-License-Identifier: MIT
"""Flux CLI plugin: `--burst` for flux submit, run, alloc, batch and bulksubmit.

It asks the daemon for the intake mode of this instance, and submits the job held
(hold), to the queue for burst jobs (queue), or unchanged (scheduler).
"""

import errno
import math
import os
import re
import sys

import flux
from flux.cli.plugin import CLIPlugin
from flux.util import parse_fsd

# The daemon answers this at once, unless it hangs.
_ASK_S = 10.0
_AUTO = "auto"
_WITH_BURST = (
    *("burst_provider", "burst_policy", "burst_max_price"),
    *("burst_mode", "burst_wait", "burst_where", "burst_tag"),
    "burst_requeue",
)
_HELD = ("hold", "0")
_URGENCIES = {"default": 16, "expedite": 31}


class BurstPlugin(CLIPlugin):
    """Let a job run on nodes that are lent to this instance when it needs them.

    flux submit --burst -N4 app          on its own nodes, or on lent ones
    flux submit --burst --burst-provider=NAME -N4 app   lent ones of this provider only
    flux submit --burst --burst-policy=auto -N4 app     as the rules of the site decide
    flux submit --burst --burst-wait=0 -N4 app          on lent nodes only
    flux submit --burst --burst-mode=isolated -N4 app   or in an instance elsewhere

    `flux jobs -o burst` shows the state of the burst, and `flux burst explain JOBID`
    why a job waits.
    """

    def __init__(self, prog):
        super().__init__(prog, prefix=None)
        self._answer = None
        self._warned = set()
        self.add_option(
            "--burst",
            action="store_true",
            # With the default False, bulksubmit would take it for a given value.
            default=None,
            help="Let the job run on lent nodes. It takes no value, so that the command"
            " may follow it",
        )
        self.add_option(
            "--burst-provider",
            metavar="NAME",
            help="Use lent nodes of this provider only. Default: of any provider",
        )
        self.add_option(
            "--burst-policy",
            choices=["always", _AUTO],
            help="auto: burst only if that saves as much as the site's rules ask for."
            " Default: always",
        )
        self.add_option(
            "--burst-max-price",
            metavar="PRICE",
            help="The highest price to pay for a node-hour",
        )
        self.add_option(
            "--burst-mode",
            choices=["joined", "isolated"],
            help="joined: the nodes join this instance; isolated: they form an instance"
            " of their own, which runs the job. Default: as in the provider's settings",
        )
        self.add_option(
            "--burst-wait",
            metavar="FSD",
            help="Try the instance's own nodes for this long first; 0: lent nodes only",
        )
        self.add_option(
            "--burst-where",
            choices=["together", "spread"],
            help="together: use one burst; spread: use several if none is large enough",
        )
        self.add_option(
            "--burst-tag",
            metavar="TAG",
            help="Run only on nodes that you requested with this tag (burst request"
            " --tag)",
        )
        self.add_option(
            "--burst-requeue",
            action="store_true",
            default=None,
            help="Run the job again if it loses a lent node, at most twice",
        )

    def preinit(self, args):
        burst = _given(args, "burst")
        for option in ("burst", *_WITH_BURST):
            # flux bulksubmit gives modify_jobspec only what is set on its args.
            setattr(args, option, _given(args, option))
        if not burst:
            for option in _WITH_BURST:
                if _given(args, option) is not None:
                    name = option.replace("_", "-")
                    raise ValueError(f"--{name} goes with --burst: add --burst")
            return
        if self.prog == "alloc" and _given(args, "burst_mode") == "isolated":
            raise ValueError(
                "--burst-mode=isolated: flux alloc needs nodes of this instance; for a"
                " shell in an isolated instance: burst request --isolated"
            )
        if _given(args, "burst_tag") and not _is_owner():
            raise ValueError(
                "--burst-tag: only the owner of the instance can request nodes with a"
                " tag, so the job would wait for ever; leave it out"
            )
        # Kept in args, as Flux calls modify_jobspec of another plugin for each job.
        site = args.burst_site = self._site()
        provider = _given(args, "burst_provider")
        _check_provider(provider, site)
        if _given(args, "burst_mode") != "isolated":
            self._warn_of_directory(_given(args, "cwd") or os.getcwd(), provider, site)
        if site["mode"] == "queue":
            self._into_queue(args, site)
        elif _is_to_be_held(args, site) and args.urgency not in _HELD:
            # Kept, since modify_jobspec puts it where the daemon finds it.
            args.burst_urgency = _URGENCIES.get(args.urgency) or int(args.urgency)
            args.urgency = "hold"

    def modify_jobspec(self, args, jobspec):
        if not _given(args, "burst"):
            return
        preferences = {
            "provider": _given(args, "burst_provider"),
            "wanted": None if _given(args, "burst_policy") == _AUTO else True,
            "max-price": _price(_given(args, "burst_max_price")),
            "where": _given(args, "burst_where"),
            "mode": _given(args, "burst_mode"),
            "wait": _wait(_given(args, "burst_wait")),
            "urgency": _given(args, "burst_urgency"),
            "tag": _given(args, "burst_tag"),
            "requeue": _given(args, "burst_requeue"),
        }
        preferences = {
            key: value for key, value in preferences.items() if value is not None
        }
        site = _given(args, "burst_site") or self._site()
        jobspec.setattr("burstable", True)
        jobspec.setattr("burst", preferences)
        if preferences.get("wait") == 0 and site["mode"] != "queue":
            _keep_to(jobspec, site["property"])

    def _warn_of_directory(self, cwd, provider, site):
        """Say that the job may not find its working directory, once for each."""
        if not cwd.startswith("/"):
            return  # a template that each node fills in
        known = site.get("directories") or {}
        lacking = [
            name
            for name, there in known.items()
            if provider in (None, name) and not _is_below(cwd, there)
        ]
        if not lacking or cwd in self._warned:
            return
        self._warned.add(cwd)
        there = sorted(set.intersection(*(set(known[name]) for name in lacking)))
        _warn(
            f"nodes of {', '.join(lacking)} have {cwd} only if their image"
            " has it; without it the job runs in /tmp there, and its files are lost."
            f" They have {', '.join(there)} (--cwd)"
        )

    def _into_queue(self, args, site):
        """Send the job to the queue that holds jobs until their nodes are online."""
        queue, named = site["queue"], _given(args, "queue")
        # As in the frobnicator, a job in the default queue counts as naming none.
        if named not in (None, queue) and named != _default_queue():
            raise ValueError(
                f"--queue={named}: on this instance burst jobs go through queue"
                f" {queue}; leave --queue out"
            )
        if _given(args, "requires") and not site.get("requires"):
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
        """Return what the daemon says about the intake mode."""
        if self._answer is None:
            try:
                handle = flux.Flux()
                self._answer = handle.rpc("burst.intake", {}).wait_for(_ASK_S).get()
            except OSError as error:
                if error.errno not in _NOBODY:
                    raise ValueError(
                        f"--burst: cannot ask the daemon: {error}"
                    ) from None
                self._answer = _NO_DAEMON
                _warn(_NOBODY[error.errno])
        return self._answer


_NOBODY = {
    errno.ENOSYS: "no burst daemon serves this instance; the job is held until one is"
    " started (burst daemon; a batch job has one if it is submitted by burst lead"
    " batch)",
    errno.ETIMEDOUT: "the burst daemon does not answer; the job is held until it does,"
    " or is restarted",
}
# A held job blocks no other, and a daemon in any mode finds it.
_NO_DAEMON = {
    "mode": "hold",
    "property": "burst",
    "providers": None,
    "directories": {},
}


def _warn(text):
    # `flux run` replaces this process, and what is not written by then is lost.
    sys.stderr.write(f"warning: {text}\n")
    sys.stderr.flush()


def _given(args, name):
    """Return the value of an option; None if it does not exist."""
    return getattr(args, name, None)


def _default_queue():
    """Return the queue of jobs that name none, flux-config-policy(5); None if unset."""
    return flux.Flux().conf_get("policy.jobspec.defaults.system.queue")


def _is_owner():
    return int(flux.Flux().attr_get("security.owner")) == os.getuid()


def _is_to_be_held(args, site):
    """Tell whether the scheduler must not see the job: it might start it."""
    never_here = _given(args, "burst_mode") == "isolated" or _given(args, "burst_tag")
    return site["mode"] == "hold" or never_here


def _check_provider(name, site):
    known = site["providers"]
    if name is None or known is None or name in known:
        return
    there = ", ".join(known) or "none"
    raise ValueError(
        f"--burst-provider={name}: there is no such provider; there are: {there}"
        " (--burst alone takes any of them)"
    )


def _is_below(path, directories):
    """Tell whether a path is one of these directories, or within one."""
    return any(os.path.commonpath([path, there]) == there for there in directories)


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
            f"--burst-wait={text}: must be finite, such as 10m; leave --burst out for a"
            " job that must never burst"
        )
    return seconds


def _keep_to(jobspec, name):
    """Add a property to the job's constraints."""
    system = jobspec.attributes["system"]
    constraint = {"properties": [name]}
    old = system.get("constraints")
    jobspec.setattr("constraints", {"and": [old, constraint]} if old else constraint)
