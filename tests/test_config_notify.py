# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import msgspec
import pytest

from burst.config import parse
from burst.errors import ConfigError


@pytest.mark.parametrize(
    "table",
    [
        {"command": ["page", "-t"]},
        {"webhook": "https://alerts.site.org/burst", "token_file": "/t"},
        {"webhook": "http://127.0.0.1:8080/x"},
        {"webhook": "http://localhost/x"},
        {"webhook": "http://[::1]:1/x"},
        {"webhook": "/run/secret/url"},
    ],
)
def test_what_may_be(table: dict[str, Any]) -> None:
    text = msgspec.json.encode(parse({"notify": table}, "x").notify)
    assert msgspec.json.decode(text).items() >= table.items()


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"command": [""]}, r"notify\.command: names no program"),
        ({"command": "page"}, r"notify\.command"),
        ({"webhook": "http://alerts.site.org/x"}, "in the clear"),
        ({"webhook": "ftp://alerts.site.org/x"}, "not a URL of http or https"),
        ({"webhook": "https:///x"}, "not a URL of http or https"),
        ({"webhook": "https://a b\n/x"}, "not a URL"),
        ({"webhook": "https://host:99999/x"}, "is not a URL"),
        ({"webhook": "https://me:hunter2@host/x"}, "has a password in it"),
        ({"webhook_file": "/t"}, "write the path of the file as webhook"),
        ({"command": ["a"], "token_file": "/t"}, "no webhook to send it to"),
        ({"command": ["a"], "timeout": "1h"}, "a post has 10s"),
    ],
)
def test_what_may_not_is_told_without_its_secrets(
    table: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why) as raised:
        parse({"notify": table}, "x")
    assert "hunter2" not in str(raised.value)
