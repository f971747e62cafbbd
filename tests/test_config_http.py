# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from burst.config import ListenAddress, parse, parse_listen
from burst.errors import ConfigError


def test_nothing_listens_by_default() -> None:
    assert parse({}, "x").http.listen == ""


@pytest.mark.parametrize(
    ("text", "address", "local"),
    [
        ("127.0.0.1:9779", ListenAddress(host="127.0.0.1", port=9779), True),
        ("127.8.9.1:1", ListenAddress(host="127.8.9.1", port=1), True),
        ("localhost:0", ListenAddress(host="localhost"), True),
        ("[::1]:9779", ListenAddress(host="::1", port=9779), True),
        ("unix:/run/b", ListenAddress(path="/run/b"), True),
        ("0.0.0.0:80", ListenAddress(host="0.0.0.0", port=80), False),
        ("[::]:80", ListenAddress(host="::", port=80), False),
        ("10.1.2.3:80", ListenAddress(host="10.1.2.3", port=80), False),
        ("head-1.site:80", ListenAddress(host="head-1.site", port=80), False),
        (
            "localhost.evil.org:80",
            ListenAddress(host="localhost.evil.org", port=80),
            False,
        ),
    ],
)
def test_addresses(text: str, address: ListenAddress, local: bool) -> None:
    assert parse_listen(text) == address
    assert address.is_local == local
    assert str(address) == text
    if local:
        assert parse({"http": {"listen": text}}, "x").http.listen == text
    else:
        with pytest.raises(ConfigError, match=r"http\.token_file is not set; write a"):
            parse({"http": {"listen": text}}, "x")
        parse({"http": {"listen": text, "token_file": "/t"}}, "x")


@pytest.mark.parametrize(
    "text",
    [
        *("9779", ":9779", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "a b:1"),
        *("::1:9779", "http://127.0.0.1:1", "127.0.0.1:-1", "127.0.0.1:1\n"),
        *("unix:run/b", "unix:", "unix:/" + "a" * 100, "unix:/a\0b"),
    ],
)
def test_what_is_no_address_is_refused_with_what_is_right(text: str) -> None:
    with pytest.raises(ConfigError, match=r"x: http\.listen: .*; such as") as raised:
        parse({"http": {"listen": text}}, "x")
    assert "unix:/run/burst/flux/http" in str(raised.value)
