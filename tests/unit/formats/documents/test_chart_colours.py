"""Colours of charts: all of them show on light and dark surfaces, and text on them is read."""

from __future__ import annotations

import re

import altair as alt
import pytest

from service.formats.documents.charts import (
    COLOURS,
    DARK,
    DARK_INK,
    DARK_SURFACE,
    GREY,
    INK,
    LIMIT,
    MORE_COLOURS,
    ON_COLOUR,
    SURFACE,
    contrast,
    data,
    draw_svg,
    shown_colours,
    svg,
    themed,
)
from service.formats.documents.procurement.words import COLOURS as KIND_COLOURS
from service.web.assets import STATIC

USED = (*COLOURS, *MORE_COLOURS, GREY, LIMIT)


@pytest.mark.parametrize(("ink", "surface"), [(INK, SURFACE), (DARK_INK, DARK_SURFACE)])
def test_every_colour_shows(ink: str, surface: str) -> None:
    """Marks by 3:1 and text by 4.5:1; colours that show are left as they are, and no two become one."""
    shown = shown_colours(surface)
    assert set(USED) | set(KIND_COLOURS.values()) == set(shown)
    assert min(contrast(colour, surface) for colour in shown.values()) >= 3.0
    assert len(set(shown.values())) == len(shown)
    assert [colour for colour in shown if contrast(colour, surface) >= 3.0 and shown[colour] != colour] == []
    assert contrast(ink, surface) >= 4.5


def test_the_surfaces_are_those_of_the_style_sheet() -> None:
    """In both schemes."""
    stated = re.findall(r"--surface: (#[0-9a-f]{6});", (STATIC / "base.css").read_text(encoding="utf-8"))
    assert stated == [SURFACE, DARK_SURFACE]


@pytest.mark.parametrize("surface", [SURFACE, DARK_SURFACE])
def test_text_on_a_colour_is_read(surface: str) -> None:
    """On what the colour becomes on the surface."""
    assert min(contrast(text, shown_colours(surface)[colour]) for colour, text in ON_COLOUR.items()) >= 4.5
    assert contrast(DARK, "#9cc8e3") >= 4.5


def test_contrast_by_hand() -> None:
    """Black on white is 21, a colour on itself 1."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    assert contrast(LIMIT, LIMIT) == 1.0


def test_what_is_drawn_has_the_shown_colours() -> None:
    """On paper as on a page, from the mark and from the data."""
    pale = COLOURS[4]
    rows = data([{"at": 1, "colour": pale}]).mark_bar(color=pale).encode(x="at:Q", color=alt.Color("colour:N", scale=None))
    drawn = {draw_svg(themed(rows, dark=False)), svg(rows)}
    for picture in drawn:
        assert pale not in picture
        assert shown_colours(SURFACE)[pale] in picture
    assert pale in draw_svg(themed(rows, dark=True))
