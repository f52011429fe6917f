"""Brings the repository's own pages into the site, and links to files into words.

A page of ``docs/`` links to files of the checkout as any Markdown does, so that the link
works where the checkout is read. In the site a link to one of ``PAGES`` leads to the page's
copy, and a link to any other file is its words alone. A link to nothing stays as it is,
and ``mkdocs build --strict`` fails. It also fails if a page would load anything from elsewhere.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path, PurePosixPath
from posixpath import relpath
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent.parent
PAGES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "backends/README.md",
    "backends/tique_backends/duckdb/README.md",
    "backends/tique_backends/monetdb/README.md",
    "backends/tique_backends/postgresql/README.md",
    "benchmarks/README.md",
    "benchmarks/RESULTS.md",
    "jepsen/README.md",
    "rewriter/README.md",
    "tests/README.md",
    "tique/README.md",
    "udfs/README.md",
)
"""What the site has of the repository, below ``repository/``."""

_logger = logging.getLogger("mkdocs.hooks.repository")

_LOADED = re.compile(
    r"<(?:script|img|iframe|link(?![^>]*rel=\"canonical\"))\b[^>]*(?:src|href)=\"?https?:[^>]*>"
)
_LINK = re.compile(
    r"(?<!!)\[(?P<words>(?:[^][]|\[[^][]*\])*)\]\((?P<target>[^()\s]+)\)"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the repository's pages."""
    for path in PAGES:
        files.append(
            File.generated(config, f"repository/{path}", abs_src_path=str(ROOT / path))
        )
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Let links to files lead to where these are in the site."""
    source = Path(page.file.abs_src_path or "")
    here = PurePosixPath(page.file.src_uri).parent

    def link(found: re.Match[str]) -> str:
        path, hash_sign, fragment = found["target"].partition("#")
        if not path or ":" in path:
            return found[0]
        target = (source.parent / path).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return found[0]
        in_repository = target.relative_to(ROOT).as_posix()
        if target.is_dir() and f"{in_repository}/README.md" in PAGES:
            in_repository += "/README.md"
        if in_repository in PAGES:
            uri = f"repository/{in_repository}"
        elif in_repository.startswith("docs/") and target.is_file():
            uri = in_repository.removeprefix("docs/")
        else:
            return found["words"]
        return f"[{found['words']}]({relpath(uri, here)}{hash_sign}{fragment})"

    return _LINK.sub(link, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Warn of what a page would load from elsewhere."""
    for found in _LOADED.finditer(output):
        _logger.warning("%s would load %s", page.file.src_uri, found[0])
    return output
