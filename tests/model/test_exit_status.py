# SPDX-License-Identifier: MIT
import signal
import subprocess

import pytest

from burst.model.exit_status import shell_status


@pytest.mark.parametrize(
    ("returncode", "status"),
    [(0, 0), (3, 3), (255, 255), (-9, 137), (-256, 255), (256, 255), (2**40, 255)],
)
def test_only_0_is_success(returncode: int, status: int) -> None:
    assert shell_status(returncode) == status


def test_it_is_that_of_a_shell() -> None:
    done = subprocess.run(["sh", "-c", "sh -c 'kill -9 $$'; exit $?"], check=False)
    assert shell_status(-signal.SIGKILL) == done.returncode
