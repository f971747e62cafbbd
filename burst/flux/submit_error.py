# SPDX-License-Identifier: MIT
"""Tells jobs that job-ingest will never accept from those that it may accept later."""

from __future__ import annotations

import errno
import re

from burst.errors import JobRefused, LeadError

# What the checks of a job itself answer: limits and queues of the job manager EINVAL,
# the validator and the frobnicator EPERM, and where the feasibility of a job is
# checked, Fluxion ENODEV and the schedulers of flux-core EOVERFLOW.
_OF_THE_JOB = {errno.EINVAL, errno.EPERM, errno.ENODEV, errno.EOVERFLOW}
# Such checks, too, but they pass: `flux queue disable`, and a full share of
# flux-accounting.
_PASSES = re.compile("is disabled|max active jobs")


def submit_error(errnum: int, text: str) -> LeadError:
    """Return the error for a job that was refused: JobRefused if it is for good."""
    for_good = errnum in _OF_THE_JOB and not _PASSES.search(text)
    kind = JobRefused if for_good else LeadError
    return kind(f"the lead does not accept the job: {text}")
