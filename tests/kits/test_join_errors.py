# SPDX-License-Identifier: MIT
from pathlib import Path

import pytest

from burst.kits.join_errors import explain_log, has_joined, main_lines, read_log

PEER = "tcp://10.0.0.1:8050"
SHAKE = f"<3>overlay.err[2]: parent sockevent {PEER} handshake failed: Broken pipe"


VERSIONS = "overlay.hello: client (0.87.0) version mismatched with server (0.88.0)"
CURVE = "could not create curve certificate: Operation not supported"
UNRESOLVED = "unable to resolve upstream peer lead.invalid: Name or service not known"
BEGINS = "<6>broker.info[2]: parent-ready: join->init 0.1s\n"
SDBUS = "<6>sdbus.info[2]: sd_bus_open_user: No medium found (retrying in 2s)"
SDMON = "sdmon.err[2]: imp-shell-0-f53.service needs cleanup - resources are offline"
SYSTEMD = "the lead has [systemd] enable, and"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (SHAKE, "the lead does not accept its certificate, as the lead was started"),
        (
            "overlay.err[4]: Error loading certificate: /c: readable by group/other",
            "its certificate cannot be used: /c: readable by group/other; run",
        ),
        (
            f"overlay.err[4]: {VERSIONS}",
            "it runs Flux 0.87.0, and the lead runs 0.88.0:",
        ),
        ("overlay.err[7]: overlay.hello: Invalid argument", "its list of hosts is not"),
        (f"<3>overlay.err[1]: {CURVE}", "its ZeroMQ was built without CURVE, that is"),
        (
            f"overlay.warning[4]: {UNRESOLVED}",
            "it cannot resolve the lead's host name lead.invalid: set",
        ),
        (
            f"{BEGINS}{SDBUS}",
            f"{SYSTEMD} it cannot connect to the user bus of systemd (No medium found",
        ),
        (f"{BEGINS}{SDMON}", f"{SYSTEMD} imp-shell-0-f53.service, of a job"),
    ],
)
def test_a_log_that_tells_why_is_put_in_words(log: str, words: str) -> None:
    later = "broker.err[2]: rc3.0: flux modprobe rc3 Exited (rc=1) 0.2s"
    assert explain_log(f"{log}\n{later}\n").startswith(words)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SDMON, "sdmon.err[2]: cleanup complete - resources are online"),
        ("", "sdbus.info[2]: sd_bus_open_user: connected"),
    ],
)
def test_a_follower_that_found_its_systemd_has_no_trouble(
    before: str, after: str
) -> None:
    assert not explain_log(f"{before}\n{after}")


def test_the_latest_reason_counts() -> None:
    assert "list of hosts" in explain_log(f"{SHAKE}\noverlay.hello: Invalid argument")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["connect delayed", "connected", "handshake succeeded"], ["disconnected"]),
        (["connect delayed", "connected"], ["handshake succeeded"]),
        (["connect delayed"], ["connected", "handshake succeeded", "disconnected"]),
        (
            ["connect delayed", "connected", "handshake succeeded"],
            ["disconnected", "connect retried", "connected", "handshake succeeded"],
        ),
    ],
)
def test_a_connection_after_the_answer_changes_nothing(
    before: list[str], after: list[str]
) -> None:
    answer = "overlay.hello: client (1) version mismatched with server (2)\n"
    log = f"{events(*before)}overlay.err[1]: {answer}{events(*after)}"
    assert explain_log(log).startswith("it runs Flux 1, and the lead runs 2:")


def test_an_answer_counts_until_another_attempt_fails() -> None:
    answer = "overlay.err[1]: overlay.hello: Invalid argument\n"
    log = answer + events("connect delayed", "closed")
    assert "nothing listens" in explain_log(log)


def events(*names: str) -> str:
    return "".join(f"<7>overlay.debug[1]: parent sockevent {PEER} {n}\n" for n in names)


ATTEMPT = ("connect delayed", "closed", "connect retried")
BROKEN = "handshake failed: Broken pipe"


REJECTED = "the lead does not accept its certificate"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (events(*ATTEMPT * 3), f"it cannot connect to {PEER}: nothing listens there"),
        (
            events("connect delayed", "connected", "disconnected"),
            f"a program other than the lead listens at {PEER}: check address and port",
        ),
        (events("connect delayed"), f"it gets no answer from {PEER}: a firewall"),
        (events("connect delayed", "connected"), f"it is connected to {PEER} and gets"),
        (
            events("connected", "handshake failed protocol: ZMTP mechanism mismatch"),
            f"what listens at {PEER} speaks ZeroMQ without CURVE: ",
        ),
        (
            events("connected", "handshake failed protocol: ZMTP cryptographic"),
            REJECTED,
        ),
        (
            events("connected", BROKEN, "disconnected", "connect retried", "connected"),
            REJECTED,
        ),
        (
            events(*["connect retried"] * 2),
            "it cannot resolve the lead's host name 10.",
        ),
        (
            events(*ATTEMPT, "connect delayed", "connected"),
            f"it is connected to {PEER} and gets no answer",
        ),
    ],
)
def test_what_happens_to_its_connection_is_put_in_words(log: str, words: str) -> None:
    assert explain_log(log).startswith(words)


SHAKEN = events(*ATTEMPT, "connect delayed", "connected", "handshake succeeded")
JOINED = f"{SHAKEN}<6>broker.info[1]: parent-ready: join->config-sync 0.2s\n"


@pytest.mark.parametrize(
    "log",
    [
        *("", "broker.err[2]: something else", SHAKEN, JOINED),
        f"overlay.err[2]: overlay.hello: Invalid argument\n{JOINED}",
        # A gateway's own children, and an event that is new.
        "overlay.err[1]: child sockevent tcp://*:1 handshake failed: Broken pipe",
        events("monitor stopped"),
    ],
)
def test_what_is_over_or_no_error_is_not_told(log: str) -> None:
    assert explain_log(log) == ""


def test_where_flux_logs_no_event_it_is_told_that_there_is_no_answer() -> None:
    begun = f"<7>overlay.debug[1]: connecting to {PEER}\n"
    assert explain_log(begun).startswith(f"it gets no answer from {PEER}: a firewall")
    assert explain_log(f"{begun}<6>broker.info[1]: parent-ready: join->init 0s\n") == ""
    assert explain_log(f"{SHAKE}\n{begun}") == explain_log(SHAKE)


def test_whether_it_has_joined() -> None:
    assert has_joined(JOINED)
    assert not has_joined(SHAKEN)


def test_info_and_debug_are_not_among_the_main_lines() -> None:
    log = f"{JOINED}<3>broker.err[1]: no \nplain <7>\n\n"
    assert main_lines(log) == ["broker.err[1]: no", "plain <7>", ""]


def test_the_end_of_a_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert read_log(log) == ""
    log.write_bytes(b"first\nlast \xff\n")
    assert read_log(log) == "first\nlast \N{REPLACEMENT CHARACTER}\n"
    assert read_log(log, 7) == "last \N{REPLACEMENT CHARACTER}\n"
