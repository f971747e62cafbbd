# SPDX-License-Identifier: MIT
import dataclasses
import logging
import os
import stat
from pathlib import Path

import pytest
import zmq

from burst.errors import CertificateError
from burst.kits import certificate
from burst.kits.certificate import Certificate, format_certificate


@pytest.fixture
def made() -> Certificate:
    return certificate.create("burst-0", hostname="node-1")


def test_a_new_certificate_is_a_key_pair_with_all_of_flux_keygens_metadata(
    made: Certificate,
) -> None:
    assert zmq.curve_public(made.secret) == made.public
    assert made.name == "burst-0"
    assert made.metadata["keygen.hostname"] == "node-1"
    assert made.metadata["keygen.userid"] == str(os.getuid())
    assert set(made.metadata) == {
        "name",
        "keygen.hostname",
        "keygen.time",
        "keygen.userid",
        "keygen.zmq-version",
    }
    assert all(made.metadata.values())


def test_a_host_name_that_flux_would_not_read_back_is_made_readable() -> None:
    assert certificate.create("x").metadata["keygen.hostname"], "this machine's"
    made = certificate.create("x", hostname="my_node")
    assert made.metadata["keygen.hostname"] == "my-node"
    certificate.parse(format_certificate(made), "text")


@pytest.mark.parametrize("name", ["", "under_score", 'qu"ote', "a\nb", "é", "x" * 201])
def test_a_name_that_flux_would_not_read_back_is_refused(name: str) -> None:
    with pytest.raises(CertificateError, match="not a name"):
        certificate.create(name)


def test_no_two_certificates_are_equal(made: Certificate) -> None:
    other = certificate.create("burst-0", hostname="node-1")
    assert made != other
    assert made.fingerprint != other.fingerprint
    assert len(made.fingerprint) == 12


def test_what_was_written_is_read_back_and_private_whatever_the_umask(
    made: Certificate, tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        certificate.write(made, tmp_path / "c")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o600
    found = certificate.read(tmp_path / "c")
    assert dataclasses.astuple(found) == dataclasses.astuple(made)


def test_a_file_that_exists_is_kept_unless_told(
    made: Certificate, tmp_path: Path
) -> None:
    path = tmp_path / "c"
    certificate.write(made, path)
    other = certificate.create("other")
    with pytest.raises(CertificateError, match=r"exists already; .*add --force"):
        certificate.write(other, path)
    assert certificate.read(path) == made
    certificate.write(other, path, replace=True)
    assert certificate.read(path) == other


def test_a_symbolic_link_is_not_written_through(
    made: Certificate, tmp_path: Path
) -> None:
    (tmp_path / "c").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CertificateError, match="exists already"):
        certificate.write(made, tmp_path / "c")
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(CertificateError, match="cannot be written: No such file"):
        certificate.write(made, tmp_path / "no" / "c")
    with pytest.raises(CertificateError, match=r"^\.: cannot be written: Is a dir"):
        certificate.write(made, Path(""))


def test_the_secret_shows_nowhere(
    made: Certificate, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("test").warning("%s %r", made, [made])
    shown = f"{made} {made!r} {[made]} {made.fingerprint} {caplog.text}"
    assert made.public.decode() in shown
    assert made.secret.decode() not in shown


def _text(made: Certificate, old: str = "", new: str = "") -> str:
    text = format_certificate(made)
    assert old in text
    return text.replace(old, new)


def _without(made: Certificate, word: str) -> str:
    lines = format_certificate(made).splitlines(keepends=True)
    return "".join(line for line in lines if word not in line)


SECRET = certificate.create("burst-0")
OTHER = certificate.create("other")


BROKEN = [
    ("", "is empty; make one with"),
    (" \n\n", "is empty"),
    ("# only a comment\n", "is not a CURVE certificate"),
    ("metadata\ncurve\n", "is not a CURVE certificate"),
    ("hello\n", r"is not a CURVE certificate \(line 1\)"),
    ("-----BEGIN CERTIFICATE-----\n", r"\(line 1\)"),
    (_without(SECRET, "secret-key"), "holds only the public key; .*copy"),
    (_without(SECRET, "public-key"), "is not a CURVE certificate"),
    (_without(SECRET, "    name"), r"no name in its metadata.*add the line"),
    (_text(SECRET, "public-key", "x-key"), r"\(line 11\)"),
    (_text(SECRET, "curve\n", "curves\n"), r"\(line 10\)"),
    (_text(SECRET, "    name", "name"), r"\(line 5\)"),
    (_text(SECRET, '"burst-0"', '"under_score"'), r"\(line 5\)"),
    (_text(SECRET, '"burst-0"', "burst-0"), r"\(line 5\)"),
    (_text(SECRET, '"burst-0"', '"'), r"\(line 5\)"),
    (_text(SECRET, "    name =", "    na_me ="), r"\(line 5\)"),
    (_text(SECRET, "    name =", "    name"), r"\(line 5\)"),
    (_text(SECRET, '"burst-0"', f'"{"x" * 250}"'), r"\(line 5\)"),
    (_text(SECRET, "keygen.time", "name"), r"\(line 7\)"),
    (_text(SECRET, SECRET.public.decode(), "short"), "public-key is not 40"),
    (_text(SECRET, SECRET.secret.decode(), "short"), "secret-key is not 40"),
    (_text(SECRET, SECRET.secret.decode(), "é" * 40), r"\(line 12\)"),
    (_text(SECRET, SECRET.secret.decode(), "#" * 40), "does not belong"),
    (_text(SECRET, SECRET.public.decode(), OTHER.public.decode()), "copy the lead"),
]


# The texts are others each time, and no name of a test may be.
@pytest.mark.parametrize(("text", "what"), BROKEN, ids=[what for _, what in BROKEN])
def test_what_flux_would_refuse_is_an_error_that_helps_and_tells_no_secret(
    text: str, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "c"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(CertificateError, match=what) as caught:
        certificate.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.advice
    seen: BaseException | None = caught.value
    while seen:
        assert SECRET.secret.decode() not in repr(seen.args)
        seen = seen.__cause__ or seen.__context__


@pytest.mark.parametrize(
    "text",
    [
        format_certificate(SECRET),
        _text(SECRET, "    ", "\t"),
        _text(SECRET, "\n", "  \r\n"),
        _text(SECRET, "# ", "# né "),
        _text(SECRET, '"burst-0"', '""'),
        _text(SECRET, "metadata", '#\nmetadata\n    site = "a b"'),
    ],
    ids=["as written", "tabs", "line ends", "comments", "no name", "more metadata"],
)
def test_what_flux_takes_is_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_text(text)
    path.chmod(0o600)
    assert certificate.read(path) == SECRET


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_file_that_others_can_open_is_refused(
    mode: int, made: Certificate, tmp_path: Path
) -> None:
    certificate.write(made, tmp_path / "c")
    (tmp_path / "c").chmod(mode)
    with pytest.raises(CertificateError, match=rf"mode {mode:04o}.*chmod 600"):
        certificate.read(tmp_path / "c")


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="no such file; make one with"):
        certificate.read(tmp_path / "c")
    with pytest.raises(CertificateError, match="cannot be read: Is a directory"):
        certificate.read(tmp_path)
    os.mkfifo(tmp_path / "c", 0o600)
    with pytest.raises(CertificateError, match="is not a file"):
        certificate.read(tmp_path / "c")
