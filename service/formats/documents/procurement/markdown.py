"""The evidence pack in Markdown."""

from __future__ import annotations

from service.formats.documents.markdown import escape, write_markdown
from service.formats.documents.procurement.model import Answer, cash_model
from service.formats.documents.procurement.sections import footer, sections, subtitle
from service.formats.documents.procurement.words import certainty, title, verdict_sentence


def write(answer: Answer) -> bytes:
    """The document in UTF-8."""
    head = [f"# {escape(title(answer))}", escape(subtitle(answer)), f"**{escape(verdict_sentence(answer))}**", escape(certainty(answer)[1])]
    return write_markdown(head, sections(cash_model(answer)), footer(answer))
