# SPDX-License-Identifier: MIT
"""Records of each format, all of a job of an hour that waited for ten minutes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from burst_replay.collected_jobs import CollectedJobs
from burst_replay.read_trace import Reader
from burst_replay.trace import Trace

T0 = 1_700_000_000
HOUR = 3600.0

SACCT_NAMES = (
    "JobID|User|UID|Account|Partition|JobName|State|Submit|Start|End|Elapsed|Timelimit"
    "|NNodes|NCPUS|NodeList"
)
_SACCT = (
    "101|ann|1001|chem|batch|relax|COMPLETED|2024-03-05T08:00:00|2024-03-05T08:10:00"
    "|2024-03-05T09:10:00|01:00:00|02:00:00|2|64|cn[01-02]"
)
_SACCT_FIELDS = dict(zip(SACCT_NAMES.split("|"), _SACCT.split("|"), strict=True))
GRID_ENGINE_CATEGORY = "-u ann -l h_rt=7200,h_vmem=2G -pe mpi 8"
UNIVA = ":NONE:NONE:668106752:638583808:login1:/home:qsub a.sh:3600.0:9:NONE:1,n1:n1"
_LSF_USAGE = "1.5 0.25 -1 0 0 0 0 0 0 0 0 0 -1 0 0 0 9 9 -1"


def read_with(reader: Reader, lines: Iterable[str]) -> Trace:
    """Return the jobs that a reader finds."""
    found = CollectedJobs("x")
    reader(found, lines)
    return found.finish()


def swf(
    submit: float = 10,
    run_time: float = 60,
    used: int = 4,
    asked: int = 8,
    limit: float = 100,
    *,
    status: int = 1,
) -> str:
    """A job of user 7, program 5, queue 2, which waited for three seconds."""
    its = f"{submit} 3 {run_time} {used} 9 -1 {asked} {limit} -1 {status}"
    return f"1 {its} 7 1 5 2 -1 -1 -1"


def sacct(names: str = SACCT_NAMES, between: str = "|", **changes: str) -> str:
    """A job on two nodes, with some fields changed."""
    fields = _SACCT_FIELDS | changes
    return between.join(fields[name] for name in names.split("|"))


def number(value: int | None, *, infinite: bool = False) -> dict[str, Any]:
    """A number as Slurm writes it since 23.02; None: not set."""
    known = value is not None and not infinite
    return {"set": known, "infinite": infinite, "number": value or 0}


def tres(**counts: int) -> list[dict[str, Any]]:
    """Trackable resources."""
    return [{"type": kind, "count": count} for kind, count in counts.items()]


def slurm_old(**changes: Any) -> dict[str, Any]:
    """A job as Slurm 21.08 and 22.05 write it."""
    times = {"elapsed": 3600, "eligible": T0, "submission": T0, "limit": 120}
    return {
        "job_id": 101,
        "account": "chem",
        "allocation_nodes": 2,
        "association": {"account": "chem", "cluster": "c", "user": "ann"},
        "cluster": "c",
        "het": {"job_id": 0, "job_offset": None},
        "name": "relax",
        "nodes": "cn[01-02]",
        "partition": "batch",
        "required": {"CPUs": 60, "memory": 4000},
        "state": {"current": "COMPLETED", "reason": "None"},
        "steps": [{"step": {"id": "101.batch"}}],
        "time": {**times, "start": T0 + 600, "end": T0 + 4200},
        "tres": {"allocated": tres(cpu=64, mem=9, node=2), "requested": tres(cpu=60)},
        "user": "ann",
    } | changes


def slurm_new(**changes: Any) -> dict[str, Any]:
    """The same job as Slurm 24.05 and 25.05 write it."""
    return {
        **slurm_old(),
        "het": {"job_id": 0, "job_offset": number(None)},
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "time": {**slurm_old()["time"], "limit": number(120), "planned": number(600)},
    } | changes


def pbs(kind: str = "E", job: str = "41.head", **values: str) -> str:
    """The end of a job on two nodes; a value that is empty is not there."""
    times = {
        "start": T0 + 600,
        "end": T0 + 4200,
        **dict.fromkeys(("ctime", "qtime"), T0),
    }
    all_values = {
        "user": "ann",
        "project": "_pbs_project_default",
        "jobname": "relax",
        "queue": "workq",
        "exec_host": "n1/0*4+n2/0*4",
        "Resource_List.walltime": "02:00:00",
        **times,
    } | values
    message = " ".join(f"{key}={value}" for key, value in all_values.items() if value)
    return pbs_event(kind, job, message)


def pbs_event(kind: str, job: str, message: str = "queue=workq") -> str:
    """Another event of a job."""
    return f"11/14/2023 23:23:20;{kind};{job};{message}"


def lsf_tail(
    limit: int = 7200, ext: str = '1 1110 "default"', usage: str = "0", index: int = 0
) -> str:
    """The fields from mailUser on, as version 10.1 writes them."""
    return (
        f'"" "chem" 0 8 "" "" {index} 4000 0 "" "" "" "" 0 "" 0 "" -1 "" "" "" "" -1'
        f' "" "" 6160 "" {T0} "" "" {ext} {usage} {limit} 4194304 900'
        ' "select[type == any] order[r15s:pg] " "" -1 "" -1 0 "" 0 0 "" 3600 "/home"'
    )


def lsf(
    job: int = 41,
    *,
    hosts: Sequence[str] = ("4*n1", "4*n2"),
    asked: Sequence[str] = (),
    start: int = T0 + 600,
    end: int = T0 + 4200,
    more: str | None = None,
) -> str:
    """A job on two nodes."""
    lists = " ".join(
        " ".join([str(len(names)), *(f'"{name}"' for name in names)])
        for names in (asked, hosts)
    )
    return (
        f'"JOB_FINISH" "10.1" {end} {job} 1001 33882139 8 {T0} 0 0 {start} "ann"'
        f' "normal" "span[ptile=4]" "" "" "login1" "/home/ann" "" "%J.out" ""'
        f' "{T0}.{job}" {lists} 64 60.0 "relax" "echo ""a b"";sleep 1"'
        f" {_LSF_USAGE} {lsf_tail() if more is None else more}"
    )


def grid_engine(
    job: str = "41",
    *,
    times: tuple[int, int, int] = (T0, T0 + 600, T0 + 4200),
    slots: str = "8",
    task: str = "0",
    category: str = GRID_ENGINE_CATEGORY,
    project: str = "NONE",
    pe_task: str = "NONE",
    more: str = "",
) -> str:
    """A job."""
    submit, start, end = times
    usage = ":".join(["0"] * 18)
    return (
        f"all.q:n1:chem:ann:relax:{job}:sge:0:{submit}:{start}:{end}:0:0:{usage}"
        f":{project}:dept:mpi:{slots}:{task}:9.5:1.25:0.5:{category}:0.000000:{pe_task}"
        f":1891.000000:0:0{more}"
    )


LISTED = {"t_submit": T0, "t_run": T0 + 5, "t_cleanup": T0 + 65, "ncores": 8}
"""A job of `flux jobs --json`, of a minute."""
R = {
    "version": 1,
    "execution": {
        "R_lite": [{"rank": "0-1", "children": {"core": "0-3"}}],
        "nodelist": ["n[0-1]"],
    },
}


def flux_event(name: str, seconds: float, **context: Any) -> dict[str, Any]:
    """An event of a job."""
    return {"timestamp": T0 + seconds, "name": name, "context": context}


def journal(job: int, *events: dict[str, Any], **others: Any) -> str:
    """A response of the journal."""
    return json.dumps({"id": job, "events": events, **others})
