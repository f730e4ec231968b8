"""What draws pictures: a picture that was drawn is kept for the next page or document that shows it."""

from __future__ import annotations

import re

import altair as alt
import pytest
import vl_convert
from jsonschema import ValidationError

from service.formats.documents import charts
from tests.support.chart_check import charts_checked


def test_the_same_picture_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And another one is another, however little differs."""
    rendered = []

    def render(specification: str, allowed_base_urls: list[str]) -> str:
        rendered.append(specification)
        return str(len(rendered))

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", render)
    charts._rendered.cache_clear()
    rows = [charts.data([{"x": x}]).mark_point().encode(x="x:Q") for x in (1, 1, 2)]
    assert [charts.svg(chart) for chart in rows] == ["1\n", "1\n", "2\n"]
    charts._rendered.cache_clear()


@pytest.mark.parametrize("name", ["🙂" * 80, "x" + "🙂" * 80, "\ue000" + "🙂𠀀" * 40])
def test_a_text_is_shortened_between_wide_characters(name: str) -> None:
    """Titles and labels keep what of them has room, with every character whole, in SVG and in PNG."""
    chart = charts.data([{"x": 1, "of": name}]).mark_bar().encode(x="x:Q", y="of:N", color="of:N")
    drawn = charts.svg(charts.titled(chart, title=alt.Title(name, limit=200)))
    shown = re.findall(r">([^<>]*…)<", drawn)
    assert len(shown) == 3
    assert all(name.startswith(text[:-1]) and len(text) > 5 for text in shown)
    assert charts.png(chart).startswith(b"\x89PNG")


def test_a_chart_that_is_no_vega_lite_is_found_by_tests() -> None:
    """They check whatever they draw, which the service does not."""
    with charts_checked():
        charts.svg(charts.data([{"x": 1}]).mark_bar(height=3).encode(x="x:Q"))
        with pytest.raises(ValidationError):
            charts.svg(charts.data([{"x": 1}]).mark_bar(higth=3).encode(x="x:Q"))


def test_pictures_that_are_kept_are_few() -> None:
    """They take a megabyte, not all that there is."""
    assert charts._rendered.cache_info().maxsize == charts.RENDERED_KEPT
