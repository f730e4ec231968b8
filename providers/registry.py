"""Names of providers, imported on first use. Other packages add theirs by entry points."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING

from providers.offer import Provider

if TYPE_CHECKING:
    from providers.base import Context

ENTRY_POINT_GROUP = "outlay.providers"
BUILT_IN: MappingProxyType[str, str] = MappingProxyType(
    {
        "aws": "providers.aws:Aws",
        "azure": "providers.azure:Azure",
        "digitalocean": "providers.digitalocean:DigitalOcean",
        "file": "providers.file:PriceFiles",
        "gcp": "providers.gcp:GoogleCloud",
        "gpuhunt": "providers.gpuhunt:Gpuhunt",
        "hyperstack": "providers.hyperstack:Hyperstack",
        "jarvislabs": "providers.jarvislabs:JarvisLabs",
        "lambda": "providers.lambda_cloud:LambdaCloud",
        "oci": "providers.oci:OracleCloud",
        "prime_intellect": "providers.prime_intellect:PrimeIntellect",
        "runpod": "providers.runpod:RunPod",
        "seeweb": "providers.seeweb:Seeweb",
        "shadeform": "providers.shadeform:Shadeform",
        "skypilot": "providers.skypilot:SkyPilotCatalog",
        "snapshot": "providers.snapshot:SnapshotProvider",
        "tensordock": "providers.tensordock:TensorDock",
        "vast": "providers.vast:Vast",
        "verda": "providers.verda:Verda",
        "vultr": "providers.vultr:Vultr",
    }
)

RATES = ("ecb",)
"""Addresses of no provider that may have a mirror: reference rates of the European Central Bank."""


class UnknownProvider(LookupError):
    """No built-in provider and no installed package has this name."""

    def __init__(self, name: str) -> None:
        known = ", ".join(provider_names())
        super().__init__(f"unknown price provider {name!r}; known: {known} (packages add theirs in the group {ENTRY_POINT_GROUP})")


def provider_names() -> tuple[str, ...]:
    """All names that `load_provider` knows, sorted: built-in, and of installed packages."""
    return tuple(sorted({*BUILT_IN, *entry_points(group=ENTRY_POINT_GROUP).names}))


def load_provider(name: str, context: Context) -> Provider:
    """The provider of a name, made with `context`; its module is imported now. Packages cannot replace a built-in name.

    Returns
    -------
    Provider

    Raises
    ------
    UnknownProvider
        No provider has the name.
    TypeError
        The name leads to something else than a Provider.
    """
    provider_class = _provider_class(name)
    if not (isinstance(provider_class, type) and issubclass(provider_class, Provider)):
        raise TypeError(f"provider {name!r} leads to {provider_class!r}, which is no providers.offer.Provider")
    return provider_class(context)  # type: ignore[call-arg]  # every provider takes its context


def _provider_class(name: str) -> object:
    if name in BUILT_IN:
        module, attribute = BUILT_IN[name].split(":")
        return getattr(import_module(module), attribute)
    for entry_point in entry_points(group=ENTRY_POINT_GROUP, name=name):
        return entry_point.load()
    raise UnknownProvider(name)
