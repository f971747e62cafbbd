# SPDX-License-Identifier: MIT
"""Man pages of section 1, from the texts that `--help` has.

A page changes when its texts or the version do: its date is that of the version. The
wheel has the page of `burst` as `flux-burst`, too (pyproject.toml).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib.metadata import distribution

import click

from burst import __version__
from burst.cli import group as burst
from burst.cli.run_burst import make_command

_PACKAGE = "flux-burst-orchestrator"
_DATE = "2026-11-23"
"""When this version was begun; changed with the version."""
_ELSEWHERE = ("flux", "flux-jobs", "flux-submit")


def man_pages() -> dict[str, str]:
    """Return roff by file name: a page for each command that `--help` lists."""
    return {
        f"{context.command_path.replace(' ', '-')}.1": _page(context)
        for command in (burst, _run_burst())
        for context in _contexts(command)
    }


def _run_burst() -> click.Command:
    """Return run-burst with the flags of our own providers, whatever is installed."""
    points = distribution(_PACKAGE).entry_points
    return make_command(points.select(group="burst.provider_types"))


def _contexts(
    command: click.Command, parent: click.Context | None = None
) -> Iterator[click.Context]:
    context = click.Context(command, parent, command.name, terminal_width=88)
    yield context
    for below in _commands(context):
        yield from _contexts(below, context)


def _commands(context: click.Context) -> list[click.Command]:
    """Return the commands below one, without those that are hidden."""
    group = context.command
    if not isinstance(group, click.Group):
        return []
    found = (group.get_command(context, name) for name in group.list_commands(context))
    return [command for command in found if command and not command.hidden]


def _page(context: click.Context) -> str:
    name = context.command_path.replace(" ", "-")
    usage = " ".join(context.command.collect_usage_pieces(context))
    lines = [
        f'.TH "{_plain(name.upper())}" 1 {_DATE} "{_PACKAGE} {__version__}"',
        ".SH NAME",
        f"{_plain(name)} \\- {_text(_summary(context.command))}",
        ".SH SYNOPSIS",
        f"\\fB{_plain(context.command_path)}\\fR {_plain(usage)}",
        ".SH DESCRIPTION",
        *_description(context.command),
    ]
    commands = _commands(context)
    if commands:
        lines.append(".SH COMMANDS")
    for command in commands:
        page = f"\\fB{_plain(f'{name}-{command.name}')}\\fR(1)"
        lines += [".TP", page, _text(_summary(command))]
    lines.append(".SH OPTIONS")
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            lines += [".TP", _flags(record[0]), _text(record[1])]
    lines += [".SH SEE ALSO", *_see_also(context)]
    return "\n".join(lines) + "\n"


def _summary(command: click.Command) -> str:
    return command.get_short_help_str(limit=1000).rstrip(".")


def _description(command: click.Command) -> Iterator[str]:
    text = inspect.cleandoc(command.help or "").partition("\f")[0]
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ".PP"
        if paragraph.startswith("\b\n"):  # click's sign: keep these lines
            yield ".nf"
            yield from map(_plain, paragraph.splitlines()[1:])
            yield ".fi"
        else:
            yield from map(_text, _sentences(paragraph))


def _sentences(paragraph: str) -> list[str]:
    """Return a line for each sentence, as roff wants it to space them well."""
    return re.split(r"(?<=[.:;?]) (?=[A-Z])", " ".join(paragraph.split()))


def _see_also(context: click.Context) -> Iterator[str]:
    """Yield the page of the command above this one, and Flux's."""
    near = "burst"
    if context.parent is not None:
        near = context.parent.command_path.replace(" ", "-")
    elif context.command.name == "burst":
        near = "run-burst"
    for page in (near, *_ELSEWHERE[:-1]):
        yield f"\\fB{_plain(page)}\\fR(1),"
    yield f"\\fB{_plain(_ELSEWHERE[-1])}\\fR(1)"


def _flags(declaration: str) -> str:
    """Return an option with its names in bold and its values in italics."""
    words = re.split(r"(-{1,2}[A-Za-z][\w-]*)", declaration)
    found = []
    for word in filter(None, words):
        if word.startswith("-"):
            found.append(f"\\fB{_plain(word)}\\fR")
        elif word.strip(" ,/"):
            before = word[: len(word) - len(word.lstrip())]
            found.append(f"{before}\\fI{_plain(word.strip())}\\fR")
        else:
            found.append(word)
    return "".join(found)


def _text(line: str) -> str:
    """Return a line of prose, what is in backquotes in bold."""
    parts = _plain(" ".join(line.split())).split("`")
    for number in range(1, len(parts), 2):
        parts[number] = f"\\fB{parts[number]}\\fR"
    found = "".join(parts)
    return f"\\&{found}" if found[:1] in {".", "'"} else found


def _plain(text: str) -> str:
    """Return text that roff prints as it is, `-` as the sign of options."""
    found = text.replace("\\", "\\e").replace("-", "\\-")
    found = found.replace("~", "\\(ti").replace("^", "\\(ha").replace("'", "\\(aq")
    return "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in found)
