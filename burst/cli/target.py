# SPDX-License-Identifier: MIT
"""Which lead and which settings a command is about: `--uri` and `--config`."""

from __future__ import annotations

import functools
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click
import msgspec

from burst import __version__, log
from burst.cli.progress import show_wait
from burst.config import Settings, load
from burst.config.file import LOOKED_FOR, USUAL_PATHS, VARIABLE, read_toml
from burst.errors import BurstError, ConfigError, NoDaemon
from burst.kits.atomic_file import NO_ROOM
from burst.kits.user_names import expand_home
from burst.lead import PING_S, Lead
from burst.model.exit_status import INTERRUPTED
from burst.model.printable import printable
from burst.runtime.connect import connect

# Where the files of an instance are. The record of changes to them has their paths,
# which must be the same from every directory and through every link.
CONFIG_PLACE = click.Path(path_type=Path, resolve_path=True)


def run_command(command: click.Command) -> None:
    """Run as a program; a BurstError ends it with status 1 and one line.

    Ctrl-C ends it with status INTERRUPTED. What goes on without it, the command says.
    """
    warnings.showwarning = log.show_warning
    # Where the shell has closed one of them (>&-), nobody reads what is printed.
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # Jobids and names may have characters that the locale's encoding lacks.
        sys.stdout.reconfigure(errors="replace")
    try:
        status = command.main(standalone_mode=False)
        # It is what the command returned, if it did not exit.
        sys.exit(status if isinstance(status, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        # click raises it in place of KeyboardInterrupt.
        sys.exit(INTERRUPTED)
    except BurstError as error:
        _end(command, str(error))
    except UnicodeEncodeError as error:
        # Such as of a word of the command line in Latin-1.
        _end(command, f"{error.object!r} is not UTF-8; type it anew")
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        # What is left to write would fail again at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        where = f"{error.filename}: " if error.filename else ""
        _end(command, f"{where}{error.strerror}")


def _nowhere() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _end(command: click.Command, why: str) -> NoReturn:
    """End with status 1 and what went wrong."""
    said = "\n".join(map(printable, why.split("\n")))
    click.echo(f"{command.name}: ERROR: {said}", err=True)
    sys.exit(1)


class Target(msgspec.Struct, frozen=True):
    """Which settings and which lead a command is about."""

    config: Path | None
    uri: str | None
    usual: tuple[str, str] = USUAL_PATHS
    """The user's own file and the site's, which are looked for if none is named."""

    def find(self) -> Path | None:
        """Return the settings file to use; None if there is none."""
        if self.config is not None:
            return self.config
        named = os.environ.get(VARIABLE)
        if named:
            return Path(named)
        usual = map(expand_home, self.usual)
        # Path.exists raises an error in a directory that may not be searched.
        return next((path for path in usual if os.path.exists(path)), None)

    def find_beside(self, lead: Lead) -> Path | None:
        """Return the settings file to use for a question about this lead.

        What the command line or the environment names; else what the lead's daemon has
        read; else what `find` finds. Raises LeadError.
        """
        if not self._is_named():
            try:
                read = lead.call("ping", {}, PING_S).get("config", "")
            except NoDaemon:
                read = ""
            if read:
                return Path(read)
        return self.find()

    def settings_or_say(self) -> Settings:
        """Read the settings; say on standard error if there is no file to read."""
        if self.find() is None:
            click.echo(
                "no daemon serves this lead, and no settings file was read"
                f" ({LOOKED_FOR}), so no provider is known; name a file with -c",
                err=True,
            )
        return self.settings()

    def settings(self) -> Settings:
        """Read the settings. Raises ConfigError."""
        found = self.find()
        settings = load(found) if found else Settings()
        if self.uri:
            lead = msgspec.structs.replace(settings.lead, uri=self.uri)
            settings = msgspec.structs.replace(settings, lead=lead)
        return settings

    def find_uri(self) -> str:
        """Return the URI of the lead; empty for the one that Flux finds.

        A fault in the site's file that nobody has named is only told: users of a lead
        can do nothing about it. Raises ConfigError for any other file, as the command
        would be about another lead than the file names.
        """
        try:
            return self.settings().lead.uri
        except ConfigError as error:
            site = expand_home(self.usual[1])
            if self.find() != site or self._is_named():
                raise
            click.echo(f"settings are not read: {error}", err=True)
            return self.uri or _uri_in(site)

    def _is_named(self) -> bool:
        """Return whether the command line or the environment names the file."""
        return self.config is not None or bool(os.environ.get(VARIABLE))

    @contextmanager
    def lead(self) -> Iterator[Lead]:
        """Connect to the lead, for the time of a command. Raises LeadError."""
        uri = self.find_uri()
        with show_wait("connecting to the lead"):
            lead = connect(uri)
        try:
            yield lead
        finally:
            lead.close()


def _uri_in(path: Path) -> str:
    """Return the `uri` of `[lead]` in a file with a fault; empty if there is none."""
    try:
        lead = read_toml(path).get("lead")
    except ConfigError:
        return ""
    uri = lead.get("uri") if isinstance(lead, dict) else None
    return uri if isinstance(uri, str) else ""


def target_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--config` and `--uri`; the command gets `target`."""

    @click.option(
        "-c",
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Settings file. Without it: " + LOOKED_FOR + ".",
    )
    @click.option(
        "--uri",
        help="URI of the lead, such as local://... Default: FLUX_URI.",
    )
    @functools.wraps(function)
    def command(config: Path | None, uri: str | None, **others: Any) -> None:
        target = Target(config, uri)
        try:
            function(target=target, **others)
        except KeyError as error:
            version = _daemon_version(target)
            if version in {"", __version__}:
                raise
            raise BurstError(
                f"the daemon is burst {version}, and this command is {__version__}: its"
                f" answer has no {error}",
                "restart the daemon, as by systemctl restart burst, if it was upgraded;"
                " else use the command of its version",
            ) from error

    return command


def _daemon_version(target: Target) -> str:
    """Return the version of the lead's daemon; empty if there is none."""
    with target.lead() as lead:
        try:
            return str(lead.call("ping", {}, PING_S).get("version", ""))
        except NoDaemon:
            return ""
