"""Write all pages."""

from __future__ import annotations

from tools.reference.pages import FOLDER, PAGES

for name, written in PAGES.items():
    (FOLDER / f"{name}.md").write_text(written(), encoding="utf-8")
