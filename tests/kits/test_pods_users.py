# SPDX-License-Identifier: MIT
"""Which of a host's users exist in followers."""

import os
import pwd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.errors import Refused
from burst.kits.pods import MultiUserTable
from burst.kits.pods.template.pod_users import (
    PodGroup,
    PodUser,
    choose_groups,
    choose_users,
    format_group,
    format_passwd,
    users_data,
)
from tests.kits.pods import SETTINGS, replace

TABLE = MultiUserTable()
MANY = replace(SETTINGS, security="baseline", munge_key="/key", multi_user=TABLE)
OWNER = 499
LISTED = [
    PodUser("root", 0, 0, "/root"),
    PodUser("nobody", 65534, 65534, "/"),
    PodUser("flux", OWNER, OWNER, "/var/lib/flux"),
    PodUser("bob", 1002, 1500, "/home/bob", "/bin/zsh"),
    PodUser("ann", 1001, 100, "/home/ann"),
    PodUser("operator", 1003, 0, "/root"),
]
GROUPS = [
    PodGroup("root", 0, ("ann",)),
    PodGroup("sudo", 27, ("ann",)),
    PodGroup("users", 100, ("bob",)),
    PodGroup("flux", OWNER, ("ann",)),
    PodGroup("lab", 1500),
    PodGroup("project", 2000, ("ann", "gone", "root")),
    PodGroup("empty", 2001, ("gone",)),
    PodGroup("nogroup", 65534, ("bob",)),
]


def test_ordinary_users_and_the_owner_are_chosen() -> None:
    found = choose_users(LISTED, TABLE, OWNER)
    assert [user.name for user in found] == ["flux", "ann", "bob"]


def test_no_group_with_rights_of_the_image_gets_a_member() -> None:
    users = choose_users(LISTED, TABLE, OWNER)
    assert choose_groups(GROUPS, users, TABLE) == [
        PodGroup("users", 100),
        PodGroup("flux", OWNER),
        PodGroup("lab", 1500),
        PodGroup("project", 2000, ("ann",)),
    ]


def test_lines_have_neither_passwords_nor_the_names_of_persons() -> None:
    assert format_passwd(LISTED[3:4]) == "bob:x:1002:1500::/home/bob:/bin/zsh\n"
    assert format_group([PodGroup("a", 1, ("x", "y"))]) == "a:x:1:x,y\n"


def test_of_two_with_one_name_or_number_the_first_counts_as_on_the_host() -> None:
    again = [PodUser("ann", 5001, 100, "/nfs/ann"), PodUser("backup", 34, 34, "/")]
    again += [PodUser("backup", 3400, 3400, "/"), PodUser("admin", OWNER, OWNER, "/")]
    found = choose_users([*LISTED, *again], TABLE, OWNER)
    # The IMP takes the first name of its user's number for that user's.
    assert [(user.name, user.uid) for user in found] == [
        *(("flux", OWNER), ("admin", OWNER)),
        *(("ann", 1001), ("bob", 1002)),
    ]
    groups = [PodGroup("project", 7, ("ann",)), *GROUPS]
    assert "project" not in {g.name for g in choose_groups(groups, found, TABLE)}


def test_an_entry_that_is_no_text_is_left_out() -> None:
    odd = os.fsdecode(b"/home/\xe4nn")
    users = [PodUser("ann", 1001, 100, odd), PodUser("bob", 1002, 100, "/home/bøb")]
    assert (
        format_passwd(users).encode() == "bob:x:1002:100::/home/bøb:/bin/sh\n".encode()
    )
    assert format_group([PodGroup("a", 1, (odd,))]) == ""


names = st.text(max_size=5)
numbers = st.integers(0, 70000)


@given(st.lists(st.builds(PodUser, names, numbers, numbers, names, names)))
def test_each_line_is_one_user_in_range(listed: list[PodUser]) -> None:
    users = choose_users(listed, TABLE, OWNER)
    for line in format_passwd(users).split("\n")[:-1]:
        _, word, uid, _gid, person, _, _ = line.split(":")
        assert (word, person) == ("x", "")
        assert int(uid) == OWNER or 1000 <= int(uid) <= 60000


@given(st.lists(st.builds(PodGroup, names, numbers, st.tuples(names))))
def test_members_are_of_groups_in_range(listed: list[PodGroup]) -> None:
    users = choose_users(LISTED, TABLE, OWNER)
    for line in format_group(choose_groups(listed, users, TABLE)).split("\n")[:-1]:
        _, _, gid, members = line.split(":")
        assert int(gid) != 0
        assert not members or 1000 <= int(gid) <= 60000


def test_the_daemons_host_is_asked() -> None:
    some = next(user for user in pwd.getpwall() if user.pw_uid and user.pw_gid)
    table = MultiUserTable(uids=(some.pw_uid, some.pw_uid))
    data = users_data(replace(MANY, multi_user=table))
    assert f"{some.pw_name}:x:{some.pw_uid}:{some.pw_gid}:" in data["passwd"]
    assert set(data) == {"passwd", "group"}


def test_too_many_users_are_refused() -> None:
    assert users_data(SETTINGS) == {}, "there are none without the table"
    users = {f"user{number}": f"{number}:{number}" for number in range(1, 20_000)}
    many = replace(MANY, multi_user=MultiUserTable(users=users))
    with pytest.raises(Refused, match="19999 users and 0 groups are") as error:
        users_data(many)
    assert "narrow multi_user.uids" in error.value.advice
