# SPDX-License-Identifier: MIT
"""The table `multi_user` of the settings: followers that run jobs of many users."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from burst.kits.pods.template.mount_paths import check_paths

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}\Z")
_USER = re.compile(r"([0-9]{1,10}):([0-9]{1,10})(:(/[^:\s]*))?\Z")
_MOST = 2**32 - 2


class MultiUserTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """`[providers.NAME.multi_user]`: guests' jobs run in pods under their own users.

    A setuid `flux-imp` of the image, at the lead's path, starts the jobs. It needs
    `security = "baseline"`, and `munge_key` or the nodes' `/run/munge` in `host_paths`.
    """

    users: Literal["lead", "image"] | Mapping[str, str] = "lead"
    """The users that exist in followers. lead: the users and groups that the daemon's
    host lists, within `uids`. image: the users that the image knows, such as by sssd.
    Or a table of names with `UID:GID` or `UID:GID:HOME`; the default HOME is
    `/home/NAME`. Names, numbers, homes and shells are in a ConfigMap."""
    uids: tuple[int, int] = (1000, 60000)
    """The lowest and the highest number of those users and of their groups, with
    users = "lead". Root and system users are always the image's own."""
    conf: str = ""
    """The directory in which flux-security of the image has its configuration, such as
    `/etc/flux`. Followers get `imp/conf.d/imp.toml` and `security/conf.d/sign.toml`
    there, which allow the followers' user to start the `flux-shell` beside the IMP.
    Default: the image has both files."""


def is_user_name(text: str) -> bool:
    """Tell whether a text is a user name that useradd(8) accepts."""
    return bool(_NAME.match(text))


def check_table(table: MultiUserTable) -> Iterator[str]:
    """Yield a sentence for each error in the table; each begins with the key."""
    least, most = table.uids
    if not 0 < least <= most <= _MOST:
        yield (
            f"multi_user.uids: {least} to {most} is not a range of users other than"
            " root"
        )
    if table.conf:
        yield from check_paths({"multi_user.conf": table.conf})
    if isinstance(table.users, str):
        return
    if not table.users:
        yield 'multi_user.users: is empty; name users, or set "lead" or "image"'
    for name, text in table.users.items():
        where = f"multi_user.users.{name}"
        if name == "root" or not is_user_name(name):
            yield f"{where}: is not the name of a guest"
        match = _USER.match(text)
        if match is None:
            yield f"{where}: {text!r} is not UID:GID or UID:GID:HOME"
        elif not all(0 < int(number) <= _MOST for number in match.group(1, 2)):
            yield f"{where}: {text!r} has the number of root; a guest may not be root"


def parse_user(name: str, text: str) -> tuple[int, int, str]:
    """Return uid, gid and home of an entry that `check_table` has checked."""
    match = _USER.match(text)
    assert match is not None, "it was checked"
    return int(match[1]), int(match[2]), match[4] or str(PurePosixPath("/home", name))
