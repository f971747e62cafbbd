# SPDX-License-Identifier: MIT
"""Asks the algorithms of members, none for longer than a second."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from queue import Empty, SimpleQueue

from burst import log
from burst_ensemble.algorithm import Algorithm, MemberDecision, MemberView, Memory
from burst_ensemble.core.answers import AlgorithmFault, Answer

LONGEST_S = 1.0
"""How long one answer may take."""


class AlgorithmCalls:
    """Calls algorithms on threads of its own. Use it from one thread.

    A call that takes too long is left alone: Python cannot end a thread. The same
    algorithm of the same member is not called again before it has returned.
    """

    def __init__(self, longest: float = LONGEST_S) -> None:
        self._longest = longest
        self._late: dict[tuple[str, str], threading.Thread] = {}

    def ask(
        self,
        member: str,
        algorithms: Mapping[str, Algorithm],
        question: tuple[MemberView, Mapping[str, Memory]],
        now: float,
    ) -> dict[str, Answer]:
        """Return what each algorithm of a member says, by its name, in this order.

        `question` is the member, and what each algorithm remembers of it. `member` has
        to tell it from those of other ensembles.
        """
        view, memory = question
        return {
            name: self._call(
                (member, name), algorithm, (view, memory.get(name, {})), now
            )
            for name, algorithm in algorithms.items()
        }

    def _call(
        self,
        key: tuple[str, str],
        algorithm: Algorithm,
        question: tuple[MemberView, Memory],
        now: float,
    ) -> Answer:
        late = self._late.get(key)
        if late is not None and late.is_alive():
            return AlgorithmFault("an earlier call of it has not returned yet")
        self._late.pop(key, None)
        answers: SimpleQueue[MemberDecision | BaseException] = SimpleQueue()

        def run() -> None:
            try:
                answers.put(algorithm.decide(*question, now))
            except BaseException as error:  # noqa: BLE001 - a plug-in's, whatever it is
                answers.put(error)

        thread = threading.Thread(target=run, name=f"burst-{key[1]}", daemon=True)
        thread.start()
        try:
            answer = answers.get(timeout=self._longest)
        except Empty:
            self._late[key] = thread
            return AlgorithmFault(f"it took longer than {self._longest:g} s")
        if isinstance(answer, BaseException):
            log.failure("algorithm %s of %s raised", key[1], key[0], error=answer)
            return AlgorithmFault(f"it raised {answer!r}")
        return answer
