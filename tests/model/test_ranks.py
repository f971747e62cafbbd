# SPDX-License-Identifier: MIT
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.model.ranks import (
    TooManyHosts,
    format_hostlist,
    format_idset,
    idset_mask,
    parse_hostlist,
    parse_idset,
)

HOST = st.from_regex(r"[a-c](-[a-b]?)?[0-9]{0,3}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", set()),
        ("[]", set()),
        ("0", {0}),
        ("0-3,7", {0, 1, 2, 3, 7}),
        ("[2-3]", {2, 3}),
        ("10,12", {10, 12}),
    ],
)
def test_idset_is_read(text, ids):
    assert parse_idset(text) == ids


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "1-",
        "-1",
        "3-1",
        "2-2",
        "3,1",
        "1-3,3",
        "01",
        "1,,2",
        " 1",
        "[1",
        "0-1000000",
        "0-500000,500002-1000001",
    ],
)
def test_what_is_no_idset_is_refused(text):
    with pytest.raises(ValueError, match="not an idset"):
        parse_idset(text)


def test_no_more_are_read_than_is_said():
    assert len(parse_idset("0-3,7", 5)) == 5
    with pytest.raises(ValueError, match="not an idset"):
        parse_idset("0-3,7-8", 5)
    assert len(parse_hostlist("a,n[0-3]", 5)) == 5
    with pytest.raises(ValueError, match="more than 5 hosts"):
        parse_hostlist("a,b,n[0-3]", 5)


@given(st.sets(st.integers(0, 500)))
def test_idset_comes_back(ids):
    assert parse_idset(format_idset(ids)) == ids


@pytest.mark.parametrize(
    ("ids", "text"), [([], ""), ([7, 3, 1, 2, 2], "1-3,7"), ([0], "0"), ([0, 1], "0-1")]
)
def test_idset_is_written_in_order_and_collapsed(ids, text):
    assert format_idset(ids) == text


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("", ()),
        ("lead", ("lead",)),
        ("lead-0,burst-0-[0-1]", ("lead-0", "burst-0-0", "burst-0-1")),
        ("n[08-10]", ("n08", "n09", "n10")),
        ("n[3,1-2]", ("n3", "n1", "n2")),
        ("n[1-2]-eth", ("n1-eth", "n2-eth")),
        ("n[5-5]", ("n5",)),
        ("a,", ("a",)),
        (",a", ("a",)),
        (" a,, b\tc ", ("a", "b", "c")),
        ("rack[0-1]node[0-3]", ("rack0node[0-3]", "rack1node[0-3]")),
        ("n[ 1-2],n[1-]", ("n01", "n02", "n1")),
        ("n[+1-+2]", ("n01", "n02")),
        ("n[1x-2]", ("n01", "n02")),
        ("[1-2]", ("1", "2")),
        ("a],b[1]", ("a],b1",)),
    ],
)
def test_hostlist_is_read_in_its_order(text, hosts):
    assert parse_hostlist(text) == hosts


@pytest.mark.parametrize(
    "text",
    [
        "n[1",
        "n[1,]",
        "n[-1]",
        "n[1--2]",
        "n[1 ]",
        "n[1-2x]",
        "n[[1-2]]",
        "n1]",
        "n[2-1]",
        "n[x]",
        "n[]",
    ],
)
def test_what_is_no_hostlist_is_refused(text):
    with pytest.raises(ValueError, match="not a hostlist"):
        parse_hostlist(text)


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        ([], ""),
        (["login", "login"], "login,login"),
        (["lead-0", "burst-0-0", "burst-0-1"], "lead-0,burst-0-[0-1]"),
        (["n1", "n3", "n4"], "n[1,3-4]"),
        (["n2", "n1"], "n[2,1]"),
        (["n8", "n9", "n10"], "n[8-10]"),
        (["n08", "n09", "n10"], "n[08-10]"),
        (["n09", "n10", "n011"], "n[09-10,011]"),
        (["n", "n1"], "n,n1"),
    ],
)
def test_hostlist_is_written_as_flux_does(hosts, text):
    assert format_hostlist(hosts) == text


@given(st.lists(HOST))
def test_hostlist_comes_back(hosts):
    assert parse_hostlist(format_hostlist(hosts)) == tuple(hosts)


@pytest.mark.parametrize("text", ["n[0-1000000]", "n[0-600000,0-400000]"])
def test_a_hostlist_of_too_many_hosts_is_refused(text):
    with pytest.raises(TooManyHosts, match="more than 1000000 hosts"):
        parse_hostlist(text)


@pytest.mark.parametrize("text", ["", "0", "0-3,7", "[1-2]", "5-99999999999", "9"])
def test_a_mask_has_the_ids_below_its_size(text):
    ids = {id_ for id_ in range(8) if idset_mask(text, 8) >> id_ & 1}

    assert idset_mask(text, 8) < 2**8
    assert ids == {i for i in range(8) if i in parse_idset(text.replace("9" * 11, "9"))}


def test_a_mask_is_of_an_idset():
    with pytest.raises(ValueError, match="not an idset"):
        idset_mask("3,1", 8)


def test_an_error_shows_little_of_a_long_text():
    with pytest.raises(ValueError, match="not an idset") as raised:
        parse_idset("x" * 1_000_000)
    assert len(str(raised.value)) < 300
