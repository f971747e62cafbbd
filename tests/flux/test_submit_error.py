# SPDX-License-Identifier: MIT
"""Jobs that are refused for good, and those that are refused for now."""

from __future__ import annotations

import errno

import pytest

from burst.errors import JobRefused
from burst.flux.handle import submit_error


@pytest.mark.parametrize(
    ("errnum", "text", "for_good"),
    [
        (errno.EINVAL, "requested duration exceeds policy limit of 1h", True),
        (errno.EINVAL, "Queue 'x' is not valid", True),
        (errno.EPERM, "-1 is not of type 'integer'", True),
        (errno.ENODEV, "Unsatisfiable request", True),
        (errno.EINVAL, "job submission to batch is disabled: maintenance", False),
        (errno.EINVAL, "user has max active jobs", False),
        (errno.ENOSYS, "Function not implemented", False),
        (errno.EAGAIN, "Resource temporarily unavailable", False),
        (errno.EPROTO, "Unrecoverable error: worker unexpectedly exited", False),
        (errno.EPIPE, "Broken pipe", False),
    ],
)
def test_what_was_refused_for_good(errnum: int, text: str, for_good: bool) -> None:
    found = submit_error(errnum, text)
    assert text in str(found)
    assert isinstance(found, JobRefused) is for_good
