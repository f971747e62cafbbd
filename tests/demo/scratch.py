# SPDX-License-Identifier: MIT
"""A private directory for one demo."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.marked import kill_all_with


@contextlib.contextmanager
def short_directory() -> Iterator[Path]:
    """Yield a directory whose path leaves room for sockets in it.

    All processes that name it in their environment are killed in the end.
    """
    directory = Path(tempfile.mkdtemp(prefix="bd-", dir="/tmp"))
    try:
        yield directory
    finally:
        kill_all_with(str(directory))
        shutil.rmtree(directory)
