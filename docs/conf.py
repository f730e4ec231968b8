"""How Sphinx makes a site of these pages, which read the same on a code host: `make docs`.

A section's index is a list of links; the site's navigation is made of it, so that no page is named twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pygments.lexer import RegexLexer, bygroups, using
from pygments.lexers import JsonLexer, TextLexer
from pygments.token import Error, Keyword, Name, Text
from sphinx.application import Sphinx

project = "Outlay"
extensions = ["myst_parser"]
exclude_patterns = ["examples"]
myst_heading_anchors = 4
highlight_language = "none"
smartquotes = False

html_theme = "furo"
html_title = "Outlay"
html_static_path = ["site"]
html_css_files = ["outlay.css"]
html_js_files = ["search.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
# Summaries of what is found are fetched from the pages, which browsers refuse for files.
html_show_search_summary = False
html_search_scorer = str(Path(__file__).parent / "site" / "scorer.js")
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0072b2", "color-brand-visited": "#0072b2"},
    "dark_css_variables": {"color-brand-primary": "#6cb8e6", "color-brand-content": "#6cb8e6", "color-brand-visited": "#6cb8e6"},
}

INDEXES = re.compile(r"(^|/)index$")
ABOVE = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[A-Z]+\.md)\)")
NAMED = re.compile(r"\[[\w./-]+\.md\]\(((?:\.\./)*[\w./-]+\.md(?:#[\w-]+)?)\)")
GROUP = re.compile(r"^## (?P<caption>.+)$|^- \[[^\]]*\]\((?P<page>[^)#:]+)\.md\)", flags=re.MULTILINE)


class PartLexer(JsonLexer):
    """JSON of which a part is shown, with an ellipsis for the rest."""

    name = "Part"

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """As of JSON; what is none is text."""
        for at, kind, value in super().get_tokens_unprocessed(text):
            yield at, Text if kind is Error else kind, value


class RequestLexer(RegexLexer):
    """A request as these pages show it: method and address, then JSON; Pygments' own expects a protocol and headers."""

    name = "Request"
    tokens = {  # noqa: RUF012 - Pygments' own form
        "root": [
            (r"^(GET|POST|PUT|PATCH|DELETE)( )(.*\n?)", bygroups(Keyword, Text, Name.Namespace)),
            (r"[^\n]*\n|[^\n]+", using(PartLexer)),
        ]
    }


def adapt_links(_app: Sphinx, _docname: str, source: list[str]) -> None:
    """Name linked pages by their titles, not their files; offer the Markdown files of the repository's root as downloads."""
    source[0] = NAMED.sub(r"[](\1)", ABOVE.sub(r"{download}`\1 <\2>`", source[0]))


def add_navigation(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Append to an index the hidden tables of contents that its lists of links stand for, one for each heading of second level."""
    if not INDEXES.search(docname):
        return
    caption, pages = "", []
    groups: list[tuple[str, list[str]]] = [(caption, pages)]
    for found in GROUP.finditer(source[0]):
        if found["caption"]:
            groups.append((found["caption"], []))
        else:
            groups[-1][1].append(found["page"])
    source[0] += "".join(_table_of_contents(caption, pages) for caption, pages in groups if pages)


def _table_of_contents(caption: str, pages: list[str]) -> str:
    options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    return "\n```{toctree}\n" + options + "\n" + "\n".join(pages) + "\n```\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx's hook."""
    app.connect("source-read", adapt_links)
    app.connect("source-read", add_navigation)
    app.add_lexer("http", RequestLexer)
    app.add_lexer("json", PartLexer)
    app.add_lexer("csv", TextLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
