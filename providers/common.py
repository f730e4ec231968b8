"""What several sources need when their answers are read: parts that may fail alone, forms of one model, things listed twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from providers.offer import ProviderError, Rejected
from providers.row_parsing import BadRow, OfferCollector, SkippedRow, get_list

ANY_REGION = "any"
"""The region of a price without a place: it holds in all, or nobody says where."""
MAX_PAGES = 50


@contextmanager
def isolate_part(collector: OfferCollector, name: str, *, sold_as: bool = False) -> Iterator[None]:
    """Around one of several calls: its failure is named in the reading and costs nothing, for what was known before stays.

    `sold_as`: the offers in it carry the name as provider, region or instance type, and of the others those that are gone are gone.
    """
    try:
        yield
    except ProviderError as error:
        collector.rejected.append(Rejected(name, str(error)))
        collector.failed_parts += 1
        collector.partial |= not sold_as


def read_pages(collector: OfferCollector, read_page: Callable[[int], bool]) -> None:
    """Have pages 1, 2, ... read while `read_page` says that there is another.

    Trouble with the first is raised; with a later one it is named in the reading, and what the earlier brought stays.
    """
    page, more = 1, read_page(1)
    with isolate_part(collector, "further pages"):
        while more:
            page += 1
            if page > MAX_PAGES:
                raise ProviderError(f"{collector.provider}: more than {MAX_PAGES} pages")
            more = read_page(page)


def accelerator_in_form(collector: OfferCollector, model: str, form: str, memory_gb: float | None = None) -> str:
    """The canonical name of a model sold in a form (`SXM5`, `pcie`), with the memory of one device [GB or GiB].

    Sources state a form also for models that there are in one form only (`L40S` and `pcie`): those are found by the model alone,
    unless its usual form is another. Raises NotForUs.
    """
    name = collector.canonical(f"{model} {form}", memory_gb)
    if name is None:
        name = collector.accelerator(model, memory_gb)
        stated = form[:3].casefold()
        if any(other in name.casefold() and other[:3] != stated for other in ("sxm", "pcie", "nvl")):
            raise SkippedRow(f"no canonical name: {model} {form}")
    return name


def get_texts(row: object, name: str) -> list[str]:
    """The texts of a list within a row, each once; an empty one says nothing. Raises BadRow where there is something else."""
    found = get_list(row, name)
    if not all(isinstance(value, str) for value in found):
        raise BadRow(f"{name} holds something that is no text")
    return [value for value in dict.fromkeys(found) if value.strip()]
