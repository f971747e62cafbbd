# SPDX-License-Identifier: MIT
"""Flux's own reading of ids, durations, sets and jobspecs, against ours."""

import importlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burst.errors import JobspecError
from burst.model.fsd import format_fsd, parse_fsd
from burst.model.jobid import format_f58, parse_jobid
from burst.model.ranks import format_hostlist, format_idset, parse_hostlist, parse_idset
from burst.model.request import parse_duration, parse_request
from tests.flux_instance import FLUX, MISSING, flux_bindings

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]

# Flux's libraries are slow at first call, and the machine may be busy.
OFTEN = settings(max_examples=100, deadline=None)

HOST = st.from_regex(r"[a-c](-[a-b]?)?[0-9]{0,3}", fullmatch=True)


def theirs(module: str) -> Any:
    flux_bindings()
    return importlib.import_module(module)


def read(parse: Any, value: Any, *errors: type[Exception]) -> Any:
    """Return what it reads, or None where it refuses."""
    try:
        return parse(value)
    except errors:
        return None


@OFTEN
@given(st.sets(st.integers(0, 300)))
def test_idsets_are_written_alike(ids):
    assert format_idset(ids) == str(theirs("flux.idset").IDset(ids))


# Flux passes over empty parts (`1,,2`), which RFC 22 does not know; we do not.
RANGE = st.from_regex(r"\d{1,2}(-\d{0,2})?", fullmatch=True)
SETS = st.lists(RANGE, max_size=4).map(",".join)


@OFTEN
@given(st.text("0123-[] ", max_size=7) | SETS | SETS.map("[{}]".format))
def test_idsets_are_read_alike(text):
    def flux(text: str) -> set[int]:
        return set(theirs("flux.idset").IDset(text))

    assert read(parse_idset, text, ValueError) == read(flux, text, ValueError)


@OFTEN
@given(st.lists(HOST))
def test_hostlists_are_written_and_read_alike(hosts):
    flux = theirs("flux.hostlist").Hostlist(",".join(hosts))
    assert format_hostlist(hosts) == str(flux)
    assert parse_hostlist(str(flux)) == tuple(hosts)


HOST_RANGE = st.from_regex(r"[ +]?[0-9]{1,2}[x ]?(-[ +-]?[0-9]{0,2})?", fullmatch=True)
BRACKET = st.lists(HOST_RANGE, max_size=3).map(lambda r: f"[{','.join(r)}]")
HOST_NAME = st.lists(
    BRACKET | st.from_regex(r"[a-c-]{0,2}", fullmatch=True), max_size=4
)
HOST_LIST = st.lists(
    HOST_NAME.map("".join) | st.text("ab01-[], \t", max_size=7), max_size=3
)


@OFTEN
@given(HOST_LIST, st.sampled_from([",", ", ", " ", "\t", ",,"]))
def test_hostlists_are_read_alike(parts, separator):
    def flux(text: str) -> tuple[str, ...]:
        return tuple(theirs("flux.hostlist").Hostlist(text))

    text = separator.join(parts)
    assert read(parse_hostlist, text, ValueError) == read(flux, text, ValueError)


@OFTEN
@given(st.integers(0, 2**63 - 1))
def test_job_ids_are_written_and_read_alike(number):
    job = theirs("flux.job").JobID(number)
    assert format_f58(number) == job.f58
    for text in (job.f58, job.f58plain, job.dec, job.hex, job.dothex):
        assert parse_jobid(text) == number


@OFTEN
@given(st.text("0123456789abcdefxzo.", max_size=9))
def test_what_is_no_job_id_is_refused_alike(text):
    flux = read(theirs("flux.job").JobID, text, ValueError, OSError)
    assert read(parse_jobid, text, ValueError) == flux


@OFTEN
@given(st.floats(0, 1e8), st.sampled_from(["", "ms", "s", "m", "h", "d"]))
def test_durations_are_read_alike(value, unit):
    flux = theirs("flux.util").parse_fsd
    text = f"{value:g}{unit}"
    assert parse_fsd(text) == pytest.approx(flux(text), rel=1e-9, abs=1e-6)
    assert flux(format_fsd(value)) == pytest.approx(value, rel=6e-3, abs=1e-6)


NUMBER = st.integers(1, 9)
COUNT = (
    NUMBER
    | st.builds(lambda least, more: {"min": least, "max": least + more}, NUMBER, NUMBER)
    | st.builds("{}+".format, NUMBER)
)
ANY_COUNT = (
    st.fixed_dictionaries(
        {"min": st.integers(0, 9)},
        optional={
            "max": NUMBER,
            "operator": st.sampled_from("+*^-"),
            "operand": st.integers(-1, 4),
        },
    )
    | st.from_regex(r"\[?[1-9](-[1-9]|\+)?\]?", fullmatch=True)
    | st.from_regex(r"[1-3]-[4-9]:[0-3](:[+*^])?", fullmatch=True)
    | st.from_regex(r"[1-9](,[1-9](-[1-9])?){1,2}", fullmatch=True)
    # Signs inside of a number (`1-+3`) are Python's own leniency, hence no plus here.
    | st.from_regex(r"[0-3][0-3:*-]{0,4}", fullmatch=True)
    | st.integers(-1, 9)
)


def vertex(kind: str | st.SearchStrategy[str], below: Any) -> Any:
    kinds = st.just(kind) if isinstance(kind, str) else kind
    return st.fixed_dictionaries(
        {"type": kinds, "count": COUNT, "with": below},
        optional={"exclusive": st.booleans()},
    )


CORES = vertex("core", st.just([])).map(lambda core: [core])
GPUS = vertex("gpu", st.just([]))
SLOT = vertex("slot", st.builds(lambda c, g: c + g, CORES, st.lists(GPUS, max_size=1)))
NODE = vertex("node", st.lists(SLOT, min_size=1, max_size=1))
RACK = vertex("rack", st.lists(NODE, min_size=1, max_size=1))
ANY = st.sampled_from(["node", "slot", "core", "gpu", "rack", "socket"])
TREE = st.recursive(
    vertex(ANY, st.just([])),
    lambda below: vertex(ANY, st.lists(below, min_size=1, max_size=2)),
    max_leaves=5,
)
SYSTEM = st.fixed_dictionaries(
    {"duration": st.floats(0, 1e6)},
    optional={
        "constraints": st.sampled_from(
            [None, {}, {"properties": ["a"]}, {"and": [{"hostlist": ["x"]}]}]
        )
    },
)
JOBSPEC = st.builds(
    lambda resources, system: {
        "version": 1,
        "resources": resources,
        "attributes": {"system": system},
    },
    st.lists(SLOT | NODE | RACK | TREE, min_size=1, max_size=2),
    SYSTEM,
)


@OFTEN
@given(JOBSPEC)
def test_jobspecs_ask_for_what_the_scheduler_reads(jobspec):
    same_request(jobspec)


@OFTEN
@given(ANY_COUNT)
def test_counts_are_read_alike(count):
    core = {"type": "core", "count": 1}
    slot = {"type": "slot", "count": count, "with": [core]}
    system = {"duration": 0.0}
    same_request({"version": 1, "resources": [slot], "attributes": {"system": system}})


def same_request(jobspec: dict[str, Any]) -> None:
    parse = theirs("flux.resource.Rv1Pool").ResourceRequest.from_jobspec
    flux = read(parse, jobspec, ValueError, KeyError)
    ours = read(parse_request, jobspec, JobspecError)
    if flux is None:
        assert ours is None
        return
    assert ours is not None
    assert ours.nodes == flux.nnodes
    assert ours.slots == flux.nslots
    assert ours.cores_per_slot == flux.slot_size
    assert ours.gpus_per_slot == flux.gpu_per_slot
    assert ours.exclusive == flux.exclusive
    counts = [each for each in (flux.node_count, flux.slot_count) if each]
    assert ours.discrete == any(each._values is not None for each in counts)
    assert json.loads(ours.constraint or "null") == (flux.constraint or None)
    assert parse_duration(jobspec) == flux.duration
