# SPDX-License-Identifier: MIT
"""`multi_user` of the settings: pods whose followers run jobs of many users.

Guests' processes run in the broker's container under their own users. So they must not
be able to read a secret, or to change a file that decides who they are. Kubernetes
makes empty directories that everybody may write, and gives the files of a Secret to a
group. So the init container `prepare`, which runs as root, sets owners and modes before
any job can run. It is the only container that mounts the Secret:

* the certificate goes to a directory that only the followers' user may enter;
* the munge key goes to a volume that only the native sidecar `munged` mounts; the
  broker's container has only the socket;
* passwd and group are those of the image, with our lines before them.

The broker's container may gain privileges by setuid programs, and its bounding set has
the three capabilities that flux-imp uses. PodSecurity *baseline* admits all this.

Sources: flux-imp(8), flux-config-security-imp(5), munged(8), the Kubernetes
documentation, "Pod Security Standards" and "Sidecar Containers".
"""

from __future__ import annotations

import pwd
import shlex
from pathlib import PurePosixPath

import tomli_w

from burst.errors import Refused
from burst.kits.flux_security import imp_tables, sign_tables
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template import pod
from burst.kits.pods.template.containers import MUNGED, PREPARE
from burst.kits.pods.template.mount_paths import (
    CONFIG_PATH,
    KEY_PATH,
    MUNGE_KEY_PATH,
    MUNGE_PATH,
    PRIVATE,
    RUN_PATH,
    SECRET_PATH,
    USERS_PATH,
)
from burst.kits.pods.template.munge import FIND_MUNGED, KEY, KEY_MEMORY
from burst.kits.pods.template.pod import CERTIFICATE
from burst.kits.pods.template.pod_users import GROUP, PASSWD, users_data
from burst.kits.pods.template.site_pod import pull_policy, site_mounts, variables
from burst.kits.pods.template.storage import (
    host_volumes,
    mounts_of,
    munge_volumes,
    rundir_of,
    socket_volumes,
)
from burst.model.lead import LeadIdentity

_CONF_FILES = {"imp.toml": "imp/conf.d", "sign.toml": "security/conf.d"}
_SOCKET = f"{MUNGE_PATH}/munge.socket.2"
_KEY_VOLUME, _USERS_VOLUME = "munge-key", "users"
_ROOT = {
    "runAsUser": 0,
    "runAsGroup": 0,
    "runAsNonRoot": False,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER"]},
}
_NO_RIGHTS = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
# A line of the image with the name or number of one of ours would be another user.
_MERGE = f"""\
merge() {{
    cat {CONFIG_PATH}/$1
    test -r /etc/$1 || return 0
    # read fails on a last line without a newline, and sets its variables all the same.
    while IFS=: read -r name word number rest || test -n "$name"; do
        grep -q "^$name:" {CONFIG_PATH}/$1 && continue
        grep -q "^[^:]*:[^:]*:$number:" {CONFIG_PATH}/$1 && continue
        printf '%s\\n' "$name:$word:$number:$rest"
    done < /etc/$1
}}
for file in {PASSWD} {GROUP}; do
    merge $file > {USERS_PATH}/$file
    chmod 644 {USERS_PATH}/$file
done
"""


def check_lead(lead: LeadIdentity, settings: PodSettings) -> None:
    """Raise Refused if these followers could not run the jobs of this lead's users."""
    if settings.multi_user is None:
        return
    if pod.user_of(settings) == 0:
        raise Refused(
            "multi_user: followers would run as root, the daemon's user",
            "run lead and daemon as flux, and set user to its number",
        )
    if not lead.access.imp:
        raise Refused(
            "multi_user is set, and the lead has no [exec] imp, with which it starts"
            " jobs of users other than its own",
            "set exec.imp in the lead's configuration, or leave multi_user out",
        )


def certificate_of(settings: PodSettings) -> str:
    """Return the path of the certificate that the broker reads."""
    place = KEY_PATH if settings.multi_user else RUN_PATH
    return f"{place}/{CERTIFICATE}"


def config_data(lead: LeadIdentity, settings: PodSettings) -> dict[str, str]:
    """Return the ConfigMap's entries for `multi_user`. Raises Refused."""
    table = settings.multi_user
    if table is None:
        return {}
    data = users_data(settings)
    return {**data, **_conf_data(lead, settings)} if table.conf else data


def _conf_data(lead: LeadIdentity, settings: PodSettings) -> dict[str, str]:
    """Return files of flux-security that let the followers' user start the shell."""
    user = pod.user_of(settings)
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        raise Refused(
            f"multi_user.conf: user {user} has no name on this host, by which imp.toml"
            " would allow it to start jobs",
            "set user to the number of flux, or use an image that has imp.toml",
        ) from None
    shell = str(PurePosixPath(lead.access.imp).with_name("flux-shell"))
    tables = {"imp.toml": imp_tables(name, shell), "sign.toml": sign_tables()}
    return {key: tomli_w.dumps(table) for key, table in tables.items()}


def first_containers(settings: PodSettings) -> list[Manifest]:
    """Return `prepare` and, with a munge key, `munged`; none without `multi_user`."""
    if settings.multi_user is None:
        return []
    prepare = {
        **_small(settings),
        "name": PREPARE,
        "command": ["/bin/sh", "-c", prepare_script(settings)],
        "securityContext": _ROOT,
        # `burst status` then shows what failed.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _prepare_mounts(settings),
    }
    if not settings.munge_key:
        return [prepare]
    munged = {
        **_small(settings),
        "name": MUNGED,
        "command": ["/bin/sh", "-c", munged_script(settings)],
        "restartPolicy": "Always",
        "securityContext": _NO_RIGHTS,
        "startupProbe": {
            "exec": {"command": ["test", "-S", _SOCKET]},
            "periodSeconds": 1,
            "failureThreshold": 60,
        },
        "volumeMounts": [
            {"name": _KEY_VOLUME, "mountPath": MUNGE_KEY_PATH},
            *mounts_of(munge_volumes(settings)),
            *_users_mounts(settings),
            *mounts_of(host_volumes(settings)),
        ],
    }
    return [prepare, munged]


def prepare_script(settings: PodSettings) -> str:
    """Return the script of `prepare` for sh. It may run again in the same pod."""
    user = pod.user_of(settings)
    own = f"chown {user}:{user}"
    passable = [RUN_PATH, *(v.path for v in socket_volumes(settings))]
    lines = ["set -eu", "umask 077"]
    lines += [f"chmod 1777 {shlex.quote(path)}" for path in _shared(settings)]
    lines += [f"{own} {path}; chmod 755 {path}" for path in passable]
    lines += _place(f"{SECRET_PATH}/{CERTIFICATE}", KEY_PATH, CERTIFICATE, own)
    if settings.munge_key:
        lines += [f"{own} {MUNGE_PATH}; chmod 755 {MUNGE_PATH}"]
        lines += _place(f"{SECRET_PATH}/{KEY}", MUNGE_KEY_PATH, KEY, own)
    script = "".join(f"{line}\n" for line in lines)
    return script + (_MERGE if _has_users(settings) else "")


def munged_script(settings: PodSettings) -> str:
    """Return the script of `munged` for sh."""
    assert settings.munge_key, "there is a key"
    files = f"{MUNGE_KEY_PATH}/munged"
    return f"""\
set -eu
{FIND_MUNGED}# What an earlier munged in this pod left.
rm -f {MUNGE_PATH}/munge*
exec munged --foreground --key-file={MUNGE_KEY_PATH}/{KEY} --socket={_SOCKET} \\
    --pid-file={files}.pid --seed-file={files}.seed --log-file={files}.log
"""


def make_rundir(settings: PodSettings) -> str:
    """Return a line for sh that makes the broker's run directory.

    Other users may enter it only with `multi_user`: guests' jobs connect to the socket.
    """
    mode = 755 if settings.multi_user else 700
    return f"mkdir -m {mode} {rundir_of(settings)}\n"


def multi_user_mounts(settings: PodSettings) -> list[Manifest]:
    """Return the broker's volumeMounts for `multi_user`."""
    table = settings.multi_user
    if table is None:
        return []
    # Each file is mounted by itself: a ConfigMap's files are links, which the IMP
    # does not read.
    conf = [
        {
            "name": "config",
            "mountPath": str(PurePosixPath(table.conf, place, name)),
            "subPath": name,
            "readOnly": True,
        }
        for name, place in _CONF_FILES.items()
        if table.conf
    ]
    return [*conf, *_users_mounts(settings)]


def multi_user_volumes(settings: PodSettings) -> list[Manifest]:
    """Return a pod's volumes for `multi_user`; the key's volume is in memory."""
    found: list[Manifest] = []
    if settings.multi_user and settings.munge_key:
        found.append({"name": _KEY_VOLUME, "emptyDir": KEY_MEMORY})
    if _has_users(settings):
        found.append({"name": _USERS_VOLUME, "emptyDir": {}})
    return found


def _has_users(settings: PodSettings) -> bool:
    table = settings.multi_user
    return table is not None and table.users != "image"


def _users_mounts(settings: PodSettings) -> list[Manifest]:
    return [
        {
            "name": _USERS_VOLUME,
            "mountPath": f"/etc/{name}",
            "subPath": name,
            "readOnly": True,
        }
        for name in (PASSWD, GROUP)
        if _has_users(settings)
    ]


def _shared(settings: PodSettings) -> list[str]:
    """Return the directories of all users, which need the sticky bit."""
    return [
        *PRIVATE,
        *(each.path for each in site_mounts(settings.pod) if each.is_empty),
    ]


def _place(source: str, directory: str, name: str, own: str) -> list[str]:
    """Return lines that put a secret where only the followers' user can read it."""
    return [
        f"mkdir -p {directory}",
        f"cat {source} > {directory}/{name}",
        f"chmod 400 {directory}/{name}; chmod 700 {directory}",
        f"{own} {directory}/{name} {directory}",
    ]


def _prepare_mounts(settings: PodSettings) -> list[Manifest]:
    volumes = {name.strip("/").replace("/", "-"): name for name in PRIVATE}
    found: list[Manifest] = [
        {"name": "config", "mountPath": CONFIG_PATH, "readOnly": True},
        {"name": "secret", "mountPath": SECRET_PATH, "readOnly": True},
        {"name": "run", "mountPath": RUN_PATH},
        *({"name": name, "mountPath": path} for name, path in volumes.items()),
        *(each.mount for each in site_mounts(settings.pod) if each.is_empty),
        *mounts_of(socket_volumes(settings)),
    ]
    if settings.munge_key:
        found += [
            *mounts_of(munge_volumes(settings)),
            {"name": _KEY_VOLUME, "mountPath": MUNGE_KEY_PATH},
        ]
    if _has_users(settings):
        found += [{"name": _USERS_VOLUME, "mountPath": USERS_PATH}]
    return [*found, *mounts_of(host_volumes(settings))]


def _small(settings: PodSettings) -> Manifest:
    """Return image, variables and resources of a container that does little."""
    return {
        "image": settings.image,
        "imagePullPolicy": pull_policy(settings.pod),
        "env": variables(settings.pod),
        "resources": pod.small_resources(),
    }
