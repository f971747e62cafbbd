# SPDX-License-Identifier: MIT
"""Flux frobnicator: keeps jobs off nodes that are lent to others.

Jobs that do not burst get no lent nodes. If burst jobs wait in a queue, the plugin
sends burstable jobs that name no queue there. Burstable jobs in another queue may have
lent nodes in addition to those that their queue requires: `{"properties": ["batch"]}`,
which the plugin `constraints` makes from a queue's `requires`, becomes `{"or":
[{"properties": ["batch"]}, {"properties": ["burst"]}]}`. So lent nodes do not need the
property of a queue, which would let other jobs use them, too. For that, this plugin has
to come after `constraints`; before it, burst jobs in such queues run on own nodes only.

On an instance with guests (`[access] allow-guest-user`), no job gets lent nodes by
itself, whatever its user asks for: only burst's daemon lets it run on those of its
user's bursts. For that, each job gets a constraint before its own, as described in
burst's `model/confinement.py`; with it, Flux lets no user move a job to another queue
(`constraints_match_check` in the job manager's queue.c). On such an instance, a
constraint that does not conform to RFC 31 is refused: the schedulers of flux-core 0.88,
and with them the lead, end at one such as `{"not": []}` (`_matches_constraint` in
Rv1Set.py). A constraint that takes long to evaluate is refused, too, since they
evaluate it for each rank while no job is started: a set of a million ranks takes a
tenth of a second each time. Flux itself reads the set once before that
(`_validate_constraint_op` in Jobspec.py), which no plugin prevents.

Fluxion's policy fcfs denies a job for its constraint while the nodes that match are
busy with jobs without a time limit. So a job without a constraint gets none there,
unless guests are kept apart; the daemon does not start if lent nodes need one.

It reads these keys of the lead's configuration, all of them optional:

    [ingest.frobnicator.burst]
    any_job = false             # true: all jobs may run on lent nodes
    share_users = false         # true: bursts are for jobs of all users
    mode = "hold"               # [intake] mode of burst's daemon
    property = "burst"          # of R, marks lent ranks
    queue = "burst"             # the queue in which burstable jobs wait
    ready = "burst-ready"       # the queue into which only the daemon moves jobs
"""

import errno
import os
import re

import flux
from flux.hostlist import Hostlist
from flux.idset import IDset
from flux.job.frobnicator import FrobnicatorPlugin

_NAME = "frob-burst.py"
_DEEPEST = 32
"""Most levels of a constraint: far below the limit of Python's recursion."""
_LONGEST = 9
"""Most digits of a rank."""
_MOST_PARTS = 256
"""Most operators and values in a constraint, all together."""
_PART_LENGTH = 32
"""Characters of a value that count as one part: a long value takes long to read."""
_FLUXION = "sched-fluxion-qmanager.stats-get"
_ANSWER_S = 5.0
"""Seconds to wait for an answer, such as Fluxion's when this is loaded."""
_VALUES = {"properties": list, "hostlist": Hostlist, "ranks": IDset}
"""The type by which Flux's schedulers read all values of an operator together."""


def check_constraint(constraint, size, depth=_DEEPEST, most=_MOST_PARTS):
    """Raise ValueError unless a constraint can be evaluated quickly (RFC 31).

    `size` is the number of ranks of the instance; `most` limits operators and values.
    Returns how many more of these it may have.
    """
    if not isinstance(constraint, dict) or len(constraint) != 1:
        raise ValueError("a constraint is an object with one operator (RFC 31)")
    ((operator, operands),) = constraint.items()
    if not isinstance(operands, list):
        raise ValueError(f"constraint {operator}: needs a list")
    most -= 1
    if operator in _VALUES:
        return _check_values(operator, operands, size, most)
    if operator not in ("and", "or", "not"):
        raise ValueError(f"constraint {operator}: there is no such operator (RFC 31)")
    if not depth:
        raise ValueError(f"a constraint has more than {_DEEPEST} levels")
    if operator == "not" and not operands:
        raise ValueError("constraint not: needs an operand")
    for each in operands:
        most = check_constraint(each, size, depth - 1, most)
    return _checked(most)


def fcfs_queues():
    """Return Fluxion's queues with policy fcfs; `default` is the anonymous queue."""
    try:
        answer = flux.Flux().rpc(_FLUXION).wait_for(_ANSWER_S).get()
    except OSError:
        return frozenset()  # another scheduler
    queues = answer.get("queues", {}).items()
    return frozenset(n for n, queue in queues if queue.get("policy") == "fcfs")


def _checked(most):
    """Return how many parts are left. Raises ValueError if there were too many."""
    if most < 0:
        raise ValueError(
            f"a constraint has more than {_MOST_PARTS} operators and values; a long"
            f" value counts once for every {_PART_LENGTH} characters"
        )
    return most


def _check_values(operator, values, size, most):
    """Check the values as Flux reads them; return how many parts are left of `most`.

    Values that are valid each by itself may be invalid together: Flux reads
    `["0", "0"]` as the set `0,0`, which it refuses.
    """
    for value in values:
        if not isinstance(value, str):
            raise ValueError(f"constraint {operator}: cannot read {value!r}")
        most = _checked(most - 1 - len(value) // _PART_LENGTH)
        if operator == "ranks":
            _check_ranks(value, size)
    try:
        _VALUES[operator](values)
    except (OSError, ValueError) as error:
        raise ValueError(f"constraint {operator}: cannot read {values!r}") from error
    return most


def _check_ranks(value, size):
    """Raise ValueError for ranks that the instance does not have.

    This is checked before the ranks are read: the cost of a set grows with its largest
    rank.
    """
    for rank in re.findall(r"\d+", value):
        if len(rank) > _LONGEST or int(rank) >= size:
            raise ValueError(
                f"constraint ranks: the instance has ranks 0-{size - 1}, and"
                f" {rank[:_LONGEST]} is not one of them"
            )


def _comes_after(config, name):
    """Tell by the configuration whether this plugin comes after the one named."""
    plugins = config.get("ingest", {}).get("frobnicator", {}).get("plugins", [])
    ours = (i for i, each in enumerate(plugins) if os.path.basename(each) == _NAME)
    return name in plugins[: next(ours, 0)]


class Frobnicator(FrobnicatorPlugin):
    """Adds the constraint `^burst`, or one that only burst's daemon changes."""

    def configure(self, args, config):
        table = config.get("ingest", {}).get("frobnicator", {}).get("burst", {})
        self._any_job = bool(table.get("any_job", False))
        self._lent = table.get("property", "burst")
        self._queue = table.get("queue", "")
        self._ready = table.get("ready", "")
        self._queues = config.get("queues", {})
        defaults = config.get("policy", {}).get("jobspec", {}).get("defaults", {})
        self._default = defaults.get("system", {}).get("queue", "")
        guests = config.get("access", {}).get("allow-guest-user") is True
        self._size = int(flux.Flux().attr_get("size")) if guests else 0
        self._after_constraints = _comes_after(config, "constraints")
        self._guests = guests
        share = self._any_job or bool(table.get("share_users", False))
        self._apart = guests and not share
        self._mode = table.get("mode", "hold")
        validators = config.get("ingest", {}).get("validator", {}).get("plugins", [])
        self._feasibility = self._mode == "queue" and "feasibility" in validators
        self._fcfs = frozenset() if self._any_job or self._apart else fcfs_queues()

    def frob(self, jobspec, userid, urgency, flags):
        queue = jobspec.queue
        if queue and queue == self._ready:
            raise ValueError(
                f"queue {queue} is for jobs whose nodes are online; submit with"
                " flux submit --burst"
            )
        system = jobspec.attributes["system"]
        if self._guests and system.get("constraints"):
            check_constraint(system["constraints"], self._size)
        burstable = bool(system.get("burstable"))
        if burstable:
            self._choose_queue(jobspec)
        elif not self._any_job:
            self._check_queue(queue)
        if self._apart:
            self._keep_apart(jobspec, burstable, userid, urgency)
            if burstable and self._feasibility and not self._waits(jobspec.queue):
                self._check_own_nodes(jobspec, userid, urgency, flags)
        elif not burstable and not self._any_job:
            self._keep_off(jobspec)

    def _choose_queue(self, jobspec):
        """Let a burstable job have lent nodes, in the queue where it belongs."""
        queue = jobspec.queue
        if self._after_constraints:
            self._set_constraint(jobspec, self._without_queue(jobspec))
        # The plugin `defaults` may have run before, so a job that names the default
        # queue cannot be distinguished from one that names none.
        if self._queue and (not queue or queue == self._default):
            self._into_queue(jobspec)
        if self._after_constraints:
            self._set_constraint(jobspec, self._with_queue(jobspec))

    def _set_constraint(self, jobspec, constraint):
        if constraint:
            jobspec.setattr("system.constraints", constraint)
        else:
            jobspec.attributes["system"].pop("constraints", None)

    def _without_queue(self, jobspec):
        """Return a job's constraint as it was before `constraints` added its queue's.

        A property that both the user and the queue require counts as the queue's.
        """
        constraint = jobspec.attributes["system"].get("constraints")
        required = self._required(jobspec.queue)
        if not required or not isinstance(constraint, dict):
            return constraint
        named = constraint.get("properties")
        if isinstance(named, list):
            left = [name for name in named if name not in required]
            return {"properties": left} if left else None
        parts = constraint.get("and")
        if isinstance(parts, list) and parts[1:] == [{"properties": required}]:
            return parts[0]
        return constraint

    def _with_queue(self, jobspec):
        """Return a burstable job's constraint with that of its queue, or lent nodes."""
        own = jobspec.attributes["system"].get("constraints")
        required = self._required(jobspec.queue)
        if not required or required == [f"^{self._lent}"]:
            return own  # any node is an own node or a lent one
        part = {"properties": required}
        if self._lent not in required:
            part = {"or": [part, {"properties": [self._lent]}]}
        return {"and": [own, part]} if own else part

    def _check_queue(self, queue):
        if self._lent in self._required(queue):
            raise ValueError(
                f"queue {queue} is for burst jobs; submit with flux submit --burst"
            )

    def _keep_off(self, jobspec):
        """Have a job that does not burst run on own nodes."""
        if self._required(jobspec.queue):
            # Its queue determines which nodes it may have. With a further constraint,
            # `flux update` could not move it to another queue any more.
            return
        constraint = {"properties": [f"^{self._lent}"]}
        old = jobspec.attributes["system"].get("constraints")
        if not old and (jobspec.queue or "default") in self._fcfs:
            return
        jobspec.setattr(
            "system.constraints", {"and": [old, constraint]} if old else constraint
        )

    def _keep_apart(self, jobspec, burstable, userid, urgency):
        """Have a job run on own nodes until the daemon gives it others."""
        old = jobspec.attributes["system"].get("constraints")
        if self._mode == "scheduler":
            if self._is_ours(old):
                raise ValueError("only the burst daemon may set this constraint")
            if not burstable:
                self._keep_off(jobspec)
            return  # sched-burst gives lent ranks only to jobs with leases
        if burstable and self._waits(jobspec.queue):
            self._put_before(jobspec, {"or": [{"properties": [self._lent]}]})
            return
        if burstable and urgency and userid != os.getuid() and self._mode == "hold":
            # The scheduler would deny it at once if it is too large for own nodes.
            raise ValueError(
                "on this instance a burst job must be submitted held; submit it with"
                " flux submit --burst"
            )
        self._put_before(jobspec, {"or": [{"properties": [f"^{self._lent}"]}]})

    def _check_own_nodes(self, jobspec, userid, urgency, flags):
        """Refuse a job that Flux's validator would refuse, and say where it can burst.

        The job cannot pass: only the daemon gives it lent nodes, once it waits, and
        until then its constraint confines it to own nodes.
        """
        job = {
            "jobspec": jobspec.jobspec,
            "userid": userid,
            "urgency": urgency,
            "flags": flags,
        }
        try:
            flux.Flux().rpc("feasibility.check", job).wait_for(_ANSWER_S).get()
        except OSError as error:
            if error.errno in (errno.ENOSYS, errno.ETIMEDOUT):
                return  # left to the validator
            raise ValueError(
                f"{error.strerror}, in queue {jobspec.queue} without lent nodes; to use"
                " lent nodes, submit it with flux submit --burst, without --queue"
            ) from None

    def _put_before(self, jobspec, part):
        old = jobspec.attributes["system"].get("constraints")
        jobspec.setattr("system.constraints", {"and": [part, old] if old else [part]})

    def _is_ours(self, constraint):
        """Tell whether the daemon would take this constraint for one of its own."""
        part = constraint
        for _ in range(3):
            if not isinstance(part, dict):
                return False
            either = part.get("or")
            first = either[0] if isinstance(either, list) and either else None
            lent = ([f"^{self._lent}"], [self._lent])
            if isinstance(first, dict) and first.get("properties") in lent:
                return True
            parts = part.get("and")
            part = parts[0] if isinstance(parts, list) and parts else None
        return False

    def _waits(self, queue):
        return bool(queue) and queue == self._queue and self._mode == "queue"

    def _required(self, queue):
        return self._queues.get(queue, {}).get("requires", []) if queue else []

    def _into_queue(self, jobspec):
        """Send a burstable job to the queue in which it waits for its nodes."""
        if jobspec.attributes["system"].get("constraints") and not self._apart:
            raise ValueError(
                "on this instance a burstable job changes its queue, which Flux allows"
                " only without constraints of its own; submit it without --requires"
            )
        jobspec.setattr("system.queue", self._queue)
