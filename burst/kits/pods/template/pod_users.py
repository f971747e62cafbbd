# SPDX-License-Identifier: MIT
"""The users and groups of followers with `multi_user`: lines of passwd and group.

Source: passwd(5), group(5).
"""

from __future__ import annotations

import grp
import pwd
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from burst.errors import Refused
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template import pod
from burst.kits.pods.template.multi_user_table import MultiUserTable, parse_user

PASSWD, GROUP = "passwd", "group"
"""The names of the two files in the burst's ConfigMap."""
# A ConfigMap holds 1 MiB, and also contains the lead's hosts and scripts.
_MOST = 512 * 1024


class PodUser(msgspec.Struct, frozen=True):
    """An entry of passwd, without a password and the person's name."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str = "/bin/sh"


class PodGroup(msgspec.Struct, frozen=True):
    """An entry of group."""

    name: str
    gid: int
    members: tuple[str, ...] = ()


_Entry = TypeVar("_Entry", PodUser, PodGroup)


def users_data(settings: PodSettings) -> dict[str, str]:
    """Return the two files for the ConfigMap; nothing if the image knows its users.

    It reads this host's users. Raises Refused if there are too many.
    """
    table = settings.multi_user
    if table is None or table.users == "image":
        return {}
    groups: Sequence[PodGroup] = ()
    if isinstance(table.users, str):
        listed = list_users()
        owner = pod.user_of(settings)
        users = choose_users(listed, table, owner)
        groups = choose_groups(list_groups(), users, table)
    else:
        users = [
            PodUser(name, *parse_user(name, text)) for name, text in table.users.items()
        ]
    data = {PASSWD: format_passwd(users), GROUP: format_group(groups)}
    size = sum(len(text.encode()) for text in data.values())
    if size > _MOST:
        raise Refused(
            f"multi_user.users: {len(users)} users and {len(groups)} groups are"
            f" {size} bytes, and a burst's ConfigMap takes {_MOST} of them",
            'narrow multi_user.uids, name the users in a table, or set users = "image"'
            " with an image that asks your directory, such as with sssd",
        )
    return data


def list_users() -> list[PodUser]:
    """Return all users that this host lists; sssd lists them only with `enumerate`."""
    return [
        PodUser(each.pw_name, each.pw_uid, each.pw_gid, each.pw_dir, each.pw_shell)
        for each in pwd.getpwall()
    ]


def list_groups() -> list[PodGroup]:
    """Return all groups that this host lists."""
    return [
        PodGroup(each.gr_name, each.gr_gid, tuple(each.gr_mem))
        for each in grp.getgrall()
    ]


def choose_users(
    listed: Iterable[PodUser], table: MultiUserTable, owner: int
) -> list[PodUser]:
    """Return the users in the range, and the followers' own user, ordered by number.

    A guest whose group is root's is left out, as that group may write files of images.
    If several entries have one name, only the first is used, as this host does: for
    example, the entry of its own file before the entry of a directory. Several names of
    one number keep their order, as the first is used.
    """
    least, most = table.uids
    found = [
        user
        for user in _first_of_each_name(listed)
        if user.uid == owner or (least <= user.uid <= most and user.gid != 0)
    ]
    return sorted(found, key=lambda user: user.uid)


def choose_groups(
    listed: Iterable[PodGroup], users: Sequence[PodUser], table: MultiUserTable
) -> list[PodGroup]:
    """Return the groups of these users, with only these users as members.

    Groups below the range, such as sudo or docker, are the image's own. The exception
    is a group that is the primary group of a user; it gets no further members.
    """
    least, most = table.uids
    names, primary = {user.name for user in users}, {user.gid for user in users}
    found = {
        group.name: PodGroup(
            group.name,
            group.gid,
            tuple(m for m in group.members if m in names and group.gid >= least),
        )
        for group in _first_of_each_name(listed)
        if group.gid <= most and (group.gid >= least or group.gid in primary - {0})
    }
    wanted = [g for g in found.values() if g.members or g.gid in primary]
    return sorted(wanted, key=lambda group: (group.gid, group.name))


def format_passwd(users: Sequence[PodUser]) -> str:
    """Return lines of passwd(5). A user that cannot be written so is left out."""
    return "".join(
        f"{user.name}:x:{user.uid}:{user.gid}::{user.home}:{user.shell}\n"
        for user in users
        if not _breaks_line(user.name, user.home, user.shell)
    )


def format_group(groups: Sequence[PodGroup]) -> str:
    """Return lines of group(5). A group that cannot be written so is left out."""
    return "".join(
        f"{group.name}:x:{group.gid}:{','.join(group.members)}\n"
        for group in groups
        if not _breaks_line(group.name, *group.members)
    )


def _first_of_each_name(listed: Iterable[_Entry]) -> list[_Entry]:
    found: dict[str, _Entry] = {}
    for entry in listed:
        found.setdefault(entry.name, entry)
    return list(found.values())


def _breaks_line(*fields: str) -> bool:
    """Tell whether a field has a separator, or bytes that are not UTF-8."""
    return any(
        # Lone surrogates stand for such bytes (PEP 383).
        char in ":\n" or "\ud800" <= char <= "\udfff"
        for field in fields
        for char in field
    )
