# SPDX-License-Identifier: MIT
"""`view_paths` of the settings: what is copied out of an image of Flux, and to where.

A Flux that is installed works only at the paths that it was built for, so each entry is
`SOURCE:TARGET`: a directory of the image, and where followers have what is in it. The
first one is the prefix of Flux, with `bin/flux`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from burst.kits.pods.template.mount_paths import check_paths

FLUX_VIEW = ("/opt/views/._view/*:/mnt/flux/view", "/opt/software:/opt/software")
"""Of the Flux Operator's images `flux-view-*`: a Spack view, and what it links to."""
# Both are in lines for sh, unquoted. In SOURCE it expands * and ?, as such directories
# are named by a hash.
_ENTRY = re.compile(r"(/[A-Za-z0-9._+*?@-]+)+:[A-Za-z0-9._+/@-]*\Z")


def split_view_path(entry: str) -> tuple[str, str]:
    """Return SOURCE and TARGET; TARGET is empty where there is none."""
    source, _, target = entry.partition(":")
    return source, target


def targets_of(paths: Sequence[str]) -> list[str]:
    """Return where followers have them."""
    return [split_view_path(entry)[1] for entry in paths]


def check_view_paths(paths: Sequence[str], mounted: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each entry that is wrong, which begins with its key.

    `mounted` has the paths at which others are mounted, by the keys that say so.
    """
    if not paths:
        yield "view_paths: is empty; name the prefix of Flux in the image"
    wanted = dict(mounted)
    for number, entry in enumerate(paths):
        key = f"view_paths[{number}]"
        source, target = split_view_path(entry)
        if not _ENTRY.match(entry) or ".." in PurePosixPath(source).parts:
            yield f"{key}: {entry!r} is not /DIRECTORY:/DIRECTORY"
        else:
            wanted[key] = target
    for sentence in check_paths(wanted):
        # What is wrong with the others is said where they are checked.
        if sentence.startswith("view_paths"):
            yield sentence
