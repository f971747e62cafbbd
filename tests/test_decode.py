# SPDX-License-Identifier: MIT
"""Decoding typed values, also where threads decode a type for the first time."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import msgspec
import pytest

from burst.decode import from_json, from_plain, json_decoder


class Part(msgspec.Struct):
    size: int = 0


class Plain:
    pass


class Whole(msgspec.Struct):
    parts: dict[str, Part] = {}


TEXT = b'{"parts": {"one": {"size": 1}}}'
WHOLE = Whole({"one": Part(1)})
ROUNDS = 100
THREADS = 4


def test_values_of_a_type() -> None:
    assert from_json(TEXT, Whole) == WHOLE
    assert json_decoder(Whole).decode(TEXT) == WHOLE
    assert from_plain({"parts": {"one": {"size": 1}}}, Whole) == WHOLE
    with pytest.raises(msgspec.ValidationError, match="Expected `int`"):
        from_json(b'{"parts": {"one": {"size": "x"}}}', Whole)


def test_a_type_that_msgspec_does_not_know() -> None:
    decoded = from_plain("x", Plain, lambda kind, _: kind())
    assert isinstance(decoded, Plain)


def test_threads_that_decode_a_type_for_the_first_time() -> None:
    """By msgspec alone, the process ends by SIGSEGV in one of the first rounds."""
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done


def decode_new_types(decode: Callable[[bytes, type], object]) -> None:
    """Have threads decode types that nobody has decoded before."""
    fields = [(f"f{number}", dict[str, Part] | None, None) for number in range(30)]
    for number in range(ROUNDS):
        inner = msgspec.defstruct(f"Inner{number}", fields)
        kind = msgspec.defstruct(f"Outer{number}", [("inner", inner), *fields])
        barrier = threading.Barrier(THREADS)

        def go(kind: type = kind, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            decode(b'{"inner": {"f29": {"x": {"size": 1}}}, "f28": null}', kind)

        threads = [threading.Thread(target=go) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    sys.setswitchinterval(1e-6)
    decode_new_types(from_json)
