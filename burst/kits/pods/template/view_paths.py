# SPDX-License-Identifier: MIT
"""`view_paths` of the settings: the directories to copy out of an image with Flux.

Flux works only at the paths that it was built for. So each entry is `SOURCE:TARGET`: a
directory of the image, and the path of its content in followers. The first entry is the
prefix of Flux, which has `bin/flux`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from burst.kits.pods.template.mount_paths import check_paths

FLUX_VIEW = ("/opt/views/._view/*:/mnt/flux/view", "/opt/software:/opt/software")
"""The paths in the Flux Operator's images `flux-view-*`: a Spack view, and the
directory that it links to."""
# Both parts are unquoted in lines for sh. The shell expands * and ? in SOURCE, as the
# names of such directories contain a hash.
_ENTRY = re.compile(r"(/[A-Za-z0-9._+*?@-]+)+:[A-Za-z0-9._+/@-]*\Z")


def split_view_path(entry: str) -> tuple[str, str]:
    """Return SOURCE and TARGET; TARGET is empty if there is none."""
    source, _, target = entry.partition(":")
    return source, target


def targets_of(paths: Sequence[str]) -> list[str]:
    """Return the TARGET of each entry."""
    return [split_view_path(entry)[1] for entry in paths]


def check_view_paths(paths: Sequence[str], mounted: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each wrong entry; it begins with the entry's key.

    `mounted` maps the keys of other settings to the paths at which they mount.
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
        # Errors of the other keys are reported where these are checked.
        if sentence.startswith("view_paths"):
            yield sentence
