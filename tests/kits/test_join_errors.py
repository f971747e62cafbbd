# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from burst.kits.join_errors import explain_log

PEER = "tcp://10.0.0.1:8050"
SHAKE = f"<3>overlay.err[2]: parent sockevent {PEER} handshake failed: Broken pipe"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (SHAKE, "the lead does not accept its certificate, as the lead was started"),
        (
            "overlay.err[4]: Error loading certificate: /c: readable by group/other",
            "its certificate cannot be used: /c: readable by group/other; run",
        ),
        (
            "overlay.err[4]: overlay.hello: client (0.87.0) version mismatched with"
            " server (0.88.0)",
            "it runs Flux 0.87.0 and the lead 0.88.0, which must",
        ),
        (
            "overlay.err[7]: overlay.hello: Invalid argument",
            "its list of hosts is not the lead's: ",
        ),
        (
            "overlay.warning[4]: unable to resolve upstream peer lead.invalid: Name or"
            " service not known",
            "it cannot resolve the lead's host name lead.invalid: set",
        ),
    ],
)
def test_a_log_that_tells_why_is_put_in_words(log: str, words: str) -> None:
    later = "broker.err[2]: rc3.0: flux modprobe rc3 Exited (rc=1) 0.2s"
    assert explain_log(f"{log}\n{later}\n").startswith(words)


def test_the_latest_reason_counts() -> None:
    assert "list of hosts" in explain_log(f"{SHAKE}\noverlay.hello: Invalid argument")


@pytest.mark.parametrize("log", ["", "broker.err[2]: something else"])
def test_a_log_that_does_not_tell_is_not_guessed_at(log: str) -> None:
    assert explain_log(log) == ""
