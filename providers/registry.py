"""Which providers there are: one line each, loaded on first use. Other packages add theirs by entry points."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

from providers.offer import Provider

ENTRY_POINT_GROUP = "outlay.providers"
BUILT_IN: MappingProxyType[str, str] = MappingProxyType(
    {
        "snapshot": "providers.snapshot:SnapshotProvider",
    }
)


class UnknownProvider(LookupError):
    """A name that no built-in provider and no installed package answers to."""

    def __init__(self, name: str) -> None:
        known = ", ".join(provider_names())
        super().__init__(f"unknown price provider {name!r}; known: {known} (packages add theirs in the group {ENTRY_POINT_GROUP})")


def provider_names() -> tuple[str, ...]:
    """All names that `load_provider` knows, sorted; built-in and from installed packages."""
    return tuple(sorted({*BUILT_IN, *entry_points(group=ENTRY_POINT_GROUP).names}))


def load_provider(name: str, **settings: Any) -> Provider:
    """A provider by its name, made with `settings`; its module is imported now and not before.

    A built-in name cannot be taken over by a package. Raises UnknownProvider, and TypeError where the name leads to something
    that is no Provider.
    """
    provider_class = _provider_class(name)
    if not (isinstance(provider_class, type) and issubclass(provider_class, Provider)):
        raise TypeError(f"provider {name!r} leads to {provider_class!r}, which is no providers.offer.Provider")
    return provider_class(**settings)


def _provider_class(name: str) -> object:
    if name in BUILT_IN:
        module, attribute = BUILT_IN[name].split(":")
        return getattr(import_module(module), attribute)
    for entry_point in entry_points(group=ENTRY_POINT_GROUP, name=name):
        return entry_point.load()
    raise UnknownProvider(name)
