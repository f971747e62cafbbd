# SPDX-License-Identifier: MIT
"""Makes interleavings of seeds, runs them, and shortens those that break something.

An interleaving is a scenario and a list of steps, both plain values: `replay` runs one
again, and what `Failure.text` prints can be pasted into a test.
"""

from __future__ import annotations

import pprint
import traceback
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from tests.machine.ending import end
from tests.machine.invariants import Broken
from tests.machine.scenarios import draw
from tests.machine.steps import STEPS, Steps

Taken = tuple[str, dict[str, Any]]
_LENGTH = (12, 36)
"""Steps of an interleaving, at least and at most."""
# Each interleaving leaves out some kinds of steps, so that others come more often.
_LEFT_OUT = 0.35
_NEEDED = {"tick", "submit"}


class Failure(NamedTuple):
    """What broke, and the interleaving in which it did."""

    seed: int
    name: str
    """Of the invariant, or the class of what the daemon raised."""
    text: str
    scenario: dict[str, Any]
    steps: Sequence[Taken]

    def show(self) -> str:
        """Return it as a person needs it: what, and how to see it again."""
        scenario = pprint.pformat(self.scenario, width=88)
        steps = "".join(f"    {_shown(*each)},\n" for each in self.steps)
        return f"seed {self.seed}: {self.text}\n\nreplay(\n{scenario},\n{steps})\n"


def make(seed: int) -> tuple[dict[str, Any], list[Taken]]:
    """Return the interleaving of a seed."""
    random = Random(seed)
    scenario = draw(random)
    names = [n for n in STEPS if n in _NEEDED or random.random() > _LEFT_OUT]
    weights = [STEPS[name].weight for name in names]
    chosen = random.choices(names, weights, k=random.randint(*_LENGTH))
    return scenario, [(name, _arguments(name, random)) for name in chosen]


def _arguments(name: str, random: Random) -> dict[str, Any]:
    values = STEPS[name].values
    return {argument: random.choice(found) for argument, found in values.items()}


def taken(name: str, /, **arguments: Any) -> Taken:
    """Return a step, as a replay has it."""
    return name, arguments


def _shown(name: str, arguments: dict[str, Any]) -> str:
    """Return a step as the call of `taken` that makes it."""
    words = [repr(name), *(f"{key}={value!r}" for key, value in arguments.items())]
    return f"taken({', '.join(words)})"


def replay(scenario: dict[str, Any], *steps: Taken) -> None:
    """Run one interleaving to its end. Raises Broken, and what the daemon raises."""
    machine = Steps(scenario)
    for name, arguments in steps:
        machine.take(name, arguments)
    end(machine)


def attempt(scenario: dict[str, Any], steps: Sequence[Taken]) -> tuple[str, str] | None:
    """Run one interleaving; return what broke, and the text of it, or None."""
    try:
        replay(scenario, *steps)
    except Broken as broken:
        return broken.name, str(broken)
    except Exception as error:  # noqa: BLE001 - whatever ends the daemon
        return type(error).__name__, traceback.format_exc()
    return None


def explore(seed: int) -> Failure | None:
    """Run the interleaving of a seed; return the shortest found that breaks alike."""
    scenario, steps = make(seed)
    found = attempt(scenario, steps)
    if found is None:
        return None
    scenario, steps = shorten(scenario, steps, found[0])
    again = attempt(scenario, steps)
    assert again, "it broke once, and does not when it is run again"
    return Failure(seed, again[0], again[1], scenario, steps)


def shorten(
    scenario: dict[str, Any], steps: list[Taken], name: str
) -> tuple[dict[str, Any], list[Taken]]:
    """Return less of an interleaving in which the same invariant breaks."""

    def breaks(its_scenario: dict[str, Any], its_steps: list[Taken]) -> bool:
        found = attempt(its_scenario, its_steps)
        return found is not None and found[0] == name

    size = max(1, len(steps) // 2)
    while size:
        at = 0
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            if breaks(scenario, fewer):
                steps = fewer
            else:
                at += size
        size = size // 2 if size > 1 or not steps else 0
    for key in sorted(scenario):
        fewer_keys = {k: v for k, v in scenario.items() if k != key}
        if key != "providers" and breaks(fewer_keys, steps):
            scenario = fewer_keys
    return scenario, steps
