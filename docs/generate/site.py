# SPDX-License-Identifier: MIT
"""Hooks of mkdocs: what pages link to outside of docs/ becomes a part of the site.

README.md is the first page. A link that is right in the repository is right in the
site; one to a folder goes to its README.md.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_FIRST = "README.md"
_LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that are linked to, and what those link to in turn."""
    top = _top(config)
    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    waiting.append(_FIRST)
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        if files.get_file_from_path(_in_site(path)) is None:
            source = str(top / path)
            files.append(File.generated(config, _in_site(path), abs_src_path=source))
        if not path.endswith(".md"):
            continue
        text = (top / path).read_text(encoding="utf-8")
        found = set(_links(text, path, top)) - seen
        seen |= found
        waiting += sorted(found)
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Return the page with links to where files are in the site."""
    top = _top(config)
    here = _in_repository(page.file, config)

    def link(match: re.Match[str]) -> str:
        target = _target(match[2], here, top)
        if files.get_file_from_path(_in_site(target)) is None:
            return match[0]  # mkdocs says that there is no such page
        start = posixpath.dirname(_in_site(here)) or "."
        return f"{match[1]}{posixpath.relpath(_in_site(target), start)}{match[3]}"

    return _LINK.sub(link, markdown)


def _top(config: MkDocsConfig) -> Path:
    return Path(config.config_file_path).parent.resolve()


def _in_site(path: str) -> str:
    """Return where a file of the repository is in the site."""
    return path.removeprefix("docs/")


def _in_repository(file: File, config: MkDocsConfig) -> str:
    source = Path(file.abs_src_path or "").resolve()
    return source.relative_to(_top(config)).as_posix()


def _links(text: str, path: str, top: Path) -> Iterator[str]:
    """Yield the files of the repository that a page links to."""
    for match in _LINK.finditer(text):
        target = _target(match[2], path, top)
        if (top / target).is_file():
            yield target


def _target(link: str, path: str, top: Path) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    return f"{target}/README.md" if (top / target).is_dir() else target
