"""Whose address counts behind proxies."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from service.api.http.client_address import client_address
from service.config import BadSetting, load_settings

PROXIES = (ip_network("10.0.0.0/8"), ip_network("::1/128"))


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        ("192.0.2.7", "", "192.0.2.7"),
        ("192.0.2.7", "203.0.113.9", "192.0.2.7"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("::1", "2001:db8::5", "2001:db8::5"),
        ("10.0.0.1", "1.2.3.4, 203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "203.0.113.9, rubbish", "10.0.0.1"),
        ("10.0.0.1", "x" * 5000, "10.0.0.1"),
    ],
)
def test_only_what_a_trusted_proxy_adds_is_believed(peer: str, forwarded_for: str, client: str) -> None:
    """A client that states addresses itself stays the one that the proxy saw."""
    assert client_address(peer, forwarded_for, PROXIES) == client


def test_proxies_are_addresses_or_networks() -> None:
    """A name would have to be resolved, and resolves to what others say."""
    assert load_settings({"OUTLAY_TRUSTED_PROXIES": "127.0.0.1, 10.1.0.0/16"}).trusted_proxies == ("127.0.0.1", "10.1.0.0/16")
    with pytest.raises(BadSetting, match="OUTLAY_TRUSTED_PROXIES"):
        load_settings({"OUTLAY_TRUSTED_PROXIES": "proxy.example.com"})
