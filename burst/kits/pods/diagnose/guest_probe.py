# SPDX-License-Identifier: MIT
"""Checks with `multi_user`, in the probe's pod, whether a guest's job could run there.

The pod has the users, the munged and the IMP of a follower, and the munge key in a
Secret, but no certificate. It decodes a munge credential of the host that runs the
probe. It also asks the IMP to start a job without a valid signature. The IMP checks the
signature last, so that error means that it would start a signed job for the followers'
user.

Sources: flux-imp(8), munge(1), unmunge(1).
"""

from __future__ import annotations

import pwd
import re
import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec

from burst.errors import ProviderError, Refused
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template import pod
from burst.kits.pods.template.mount_paths import OUR_PATH
from burst.kits.pods.template.multi_user import check_lead, config_data
from burst.kits.pods.template.multi_user_table import is_user_name
from burst.kits.program import run
from burst.model.finding import Finding, note, ok, wrong
from burst.model.lead import LeadIdentity

_CREDENTIAL, _VOLUME, _PATH = "credential", "credential", f"{OUR_PATH}/credential"
_TTL_S = 900
_LONGEST = 300
_LINE = re.compile(r"^burst-guest-(uid|home|imp|exec|munge):[ \t]*(.*)$", re.MULTILINE)
_SCRIPT = """\
echo "burst-guest-uid: $(id -u {name} 2>/dev/null)"
home=$(eval echo '~'{name})
if [ -d "$home" ]; then echo "burst-guest-home: $home"; fi
said=$({imp} whoami 2>&1)
echo "burst-guest-imp:" $said
said=$(echo '{{"J":"none"}}' | {imp} exec {shell} 0 2>&1)
echo "burst-guest-exec:" $said
if [ -e {credential} ]; then
  said=$(unmunge < {credential} 2>&1 | sed -n '/STATUS/s/^STATUS: *//p; /unmunge/p')
  echo "burst-guest-munge:" $said
fi
"""


class Guest(msgspec.Struct, frozen=True):
    """The user of the job, as known to the host that runs the probe."""

    name: str
    uid: int | None
    """None if this host has no such user."""
    credential: str = ""
    """A munge credential of this host that only the followers' user may decode; empty
    if this host has no munge."""


class GuestFacts(msgspec.Struct, frozen=True):
    """The facts that the pod has printed; each is empty if it could not be found."""

    uid: str = ""
    home: str = ""
    """The guest's home; empty if it is not a directory in the pod."""
    imp: str = ""
    """The output of `flux-imp whoami`."""
    exec: str = ""
    """The error of `flux-imp exec` for a job without a valid signature."""
    munge: str | None = None
    """The result of unmunge; None if there was no credential to decode."""


def find_guest(name: str, settings: PodSettings) -> Guest:
    """Return what this host knows about a user. Raises Refused."""
    if settings.multi_user is None:
        raise Refused(
            f"pods run only jobs of the instance's owner, and none of {name}",
            "set multi_user of the provider",
        )
    if not is_user_name(name):
        raise Refused(f"{name!r} is not the name of a user")
    try:
        uid = pwd.getpwnam(name).pw_uid
    except KeyError:
        uid = None
    return Guest(name, uid, _make_credential(pod.user_of(settings)))


def _make_credential(user: int) -> str:
    """Return a credential that only this user may decode; empty without munge."""
    command = ["munge", "--no-input", f"--restrict-uid={user}", f"--ttl={_TTL_S}"]
    try:
        return run(command)
    except ProviderError:
        # The finding then says that no credential was tried.
        return ""


def script(guest: Guest, lead: LeadIdentity) -> str:
    """Return lines for sh that print the facts."""
    return _SCRIPT.format(
        name=shlex.quote(guest.name),
        imp=shlex.quote(lead.access.imp),
        shell=shlex.quote(str(PurePosixPath(lead.access.imp).with_name("flux-shell"))),
        credential=f"{_PATH}/{_CREDENTIAL}",
    )


def guest_objects(
    meta: Manifest, lead: LeadIdentity, settings: PodSettings, guest: Guest
) -> list[Manifest]:
    """Return the objects that the pod mounts and its Job is to own. Raises Refused.

    The certificate in the Secret is empty, as this pod joins no instance.
    """
    check_lead(lead, settings)
    secret = {pod.CERTIFICATE: "", _CREDENTIAL: guest.credential}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": config_data(lead, settings),
        },
        pod.secret_of(meta, secret, settings),
    ]


def credential_volume(name: str, guest: Guest) -> list[Manifest]:
    """Return the volume of the credential, which the pod's user can read."""
    if not guest.credential:
        return []
    item = {"key": _CREDENTIAL, "path": _CREDENTIAL, "mode": 0o444}
    return [{"name": _VOLUME, "secret": {"secretName": name, "items": [item]}}]


def credential_mount(guest: Guest) -> list[Manifest]:
    """Return the container's volumeMounts of the credential."""
    if not guest.credential:
        return []
    return [{"name": _VOLUME, "mountPath": _PATH, "readOnly": True}]


def parse(said: str) -> tuple[GuestFacts | None, str]:
    """Return the facts in this output, None if it has none, and the rest of it."""
    found = {key: words.strip()[:_LONGEST] for key, words in _LINE.findall(said)}
    return (GuestFacts(**found) if found else None), _LINE.sub("", said).strip()


def judge_guest(
    facts: GuestFacts, guest: Guest, lead: LeadIdentity
) -> Iterator[Finding]:
    """Yield findings on whether the guest's jobs could run there, from the facts."""
    yield _judge_user(facts, guest)
    if facts.home:
        yield ok(f"{guest.name} has a home there, {facts.home}")
    else:
        yield note(
            f"{guest.name} has no home there: a job that is submitted from it runs in"
            " /tmp",
            "mount the homes as volumes, at their paths on the lead",
        )
    yield _judge_imp(facts, lead.access.imp)
    yield from _judge_munge(facts)


def _judge_user(facts: GuestFacts, guest: Guest) -> Finding:
    name = guest.name
    if not facts.uid:
        return wrong(
            f"there is no user {name} there",
            "add the user with multi_user.users, or widen multi_user.uids",
        )
    if guest.uid is None:
        return note(
            f"{name} is user {facts.uid} there, and this host has no such user",
            "check that it is the user's number on the lead",
        )
    if facts.uid != str(guest.uid):
        return wrong(
            f"{name} is user {facts.uid} there, and {guest.uid} on this host",
            'give users the lead\'s numbers, such as with multi_user.users = "lead"',
        )
    return ok(f"{name} is user {facts.uid} there, as on this host")


def _judge_imp(facts: GuestFacts, imp: str) -> Finding:
    if not re.search(r"flux-imp: privileged: .*euid=0", facts.imp):
        return wrong(
            f"{imp} does not become root there: {facts.imp or 'it prints nothing'}",
            "in the image it must belong to root, with mode 4755, and no mount may be"
            " nosuid; if it finds no configuration, set multi_user.conf",
        )
    if "signature validation failed" not in facts.exec:
        return wrong(
            f"{imp} starts no job there: {facts.exec or 'it prints nothing'}",
            "correct imp.toml of the image, which must allow the followers' user, or"
            " set multi_user.conf",
        )
    return ok(f"{imp} is setuid there, and starts signed jobs for the followers' user")


def _judge_munge(facts: GuestFacts) -> Iterator[Finding]:
    if facts.munge is None:
        yield note(
            "munge makes no credential on this host, so whether one is accepted there"
            " was not checked",
            "run this where the lead's munged runs",
        )
    elif facts.munge.startswith("Success"):
        yield ok("a credential of this host's munge is accepted there")
    else:
        yield wrong(
            "a credential of this host's munge is not accepted there:"
            f" {facts.munge or 'unmunge prints nothing'}",
            "set munge_key to the key of the lead's munged, and synchronize both"
            " clocks",
        )
