"""Shared by several providers: parts that may fail separately, pages, form factors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from providers.offer import ProviderError, Rejected
from providers.row_parsing import OfferCollector, SkippedRow

MAX_PAGES = 50


@contextmanager
def isolate_part(collector: OfferCollector, name: str, *, sold_as: bool = False) -> Iterator[None]:
    """Context of one of several calls: a failure is recorded in the collector, and offers known before stay in use.

    Parameters
    ----------
    collector : OfferCollector
        Gets the failure as a rejected row.
    name : str
        Name of the part.
    sold_as : bool
        The part's offers carry `name` as provider, region or instance type: of the offers known before, only these stay.
    """
    try:
        yield
    except ProviderError as error:
        collector.rejected.append(Rejected(name, str(error)))
        collector.failed_parts += 1
        collector.partial |= not sold_as


def read_pages(collector: OfferCollector, read_page: Callable[[int], bool]) -> None:
    """Read pages 1, 2, … while `read_page` returns that another follows.

    An error on the first page is raised. An error on a later page is recorded in the collector; earlier pages stay.

    Raises
    ------
    ProviderError
        The first page failed.
    """
    page, more = 1, read_page(1)
    with isolate_part(collector, "further pages"):
        while more:
            page += 1
            if page > MAX_PAGES:
                raise ProviderError(f"{collector.provider}: more than {MAX_PAGES} pages")
            more = read_page(page)


def accelerator_in_form(collector: OfferCollector, model: str, form: str, memory_gb: float | None = None) -> str:
    """Canonical name of a model in a form factor (`SXM5`, `pcie`).

    Some sources state a form factor for models with only one (`L40S`, `pcie`): these are found by model alone unless their form differs.

    Parameters
    ----------
    collector : OfferCollector
        Names accelerators.
    model, form : str
        Vendor's label and form factor.
    memory_gb : float, optional
        Memory of one device [GB or GiB].

    Returns
    -------
    str
        Canonical name.

    Raises
    ------
    SkippedRow
        There is no canonical name.
    """
    name = collector.canonical(f"{model} {form}", memory_gb)
    if name is None:
        name = collector.accelerator(model, memory_gb)
        stated = form[:3].casefold()
        if any(other in name.casefold() and other[:3] != stated for other in ("sxm", "pcie", "nvl")):
            raise SkippedRow(f"no canonical name: {model} {form}")
    return name
