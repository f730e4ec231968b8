"""EC2's query API: signed calls, all pages, XML converted to the shape of AWS's SDKs.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference: form fields in, XML out, lower-camel names where SDKs have upper-camel ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree as ET

from requests_aws4auth import AWS4Auth

from providers.http import Http
from providers.offer import ProviderError
from providers.row_parsing import expect_list, expect_object

VERSION = "2016-11-15"
FIRST_REGION = "us-east-1"
MAX_PAGES = 100
MAX_DEPTH = 20
LISTS = {
    "DescribeRegions": ("RegionInfo", "Regions"),
    "DescribeInstanceTypes": ("InstanceTypeSet", "InstanceTypes"),
    "DescribeInstanceTypeOfferings": ("InstanceTypeOfferingSet", "InstanceTypeOfferings"),
    "DescribeSpotPriceHistory": ("SpotPriceHistorySet", "SpotPriceHistory"),
    "DescribeCapacityBlockOfferings": ("CapacityBlockOfferingSet", "CapacityBlockOfferings"),
}
"""Name of the list in an action's answer: in XML, and in the SDKs."""


@dataclass(frozen=True, slots=True)
class Account:
    """Credentials for calls to EC2."""

    http: Http
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)

    def rows(self, region: str, action: str, fields: Mapping[str, str] | None = None) -> list[Any]:
        """All rows of an action in a region, over all pages. Raises ProviderError."""
        found: list[Any] = []
        token: dict[str, str] = {}
        for _ in range(MAX_PAGES):
            answer = parse_xml(self._call(region, {"Action": action, "Version": VERSION, **(fields or {}), **token}))
            found += expect_list(answer.get(LISTS[action][1]), LISTS[action][1])
            if not answer.get("NextToken"):
                return found
            token = {"NextToken": str(answer["NextToken"])}
        raise ProviderError(f"{action} in {region} has more than {MAX_PAGES} pages")

    def _call(self, region: str, fields: Mapping[str, str]) -> str:
        signature = AWS4Auth(self.access_key, self.secret_key, region, "ec2", session_token=self.session_token or None)
        return self.http.post_form(f"https://ec2.{region}.amazonaws.com/", fields, auth=signature)


def parse_xml(answer: str) -> Mapping[str, Any]:
    """An answer in the shape of the SDKs, with upper-camel names. Raises ProviderError, also for a stated error."""
    if "<!DOCTYPE" in answer:
        raise ProviderError("EC2's answer declares a document type: no answer of EC2 does")
    try:
        root = ET.fromstring(answer)  # noqa: S314  # without a document type there are no entities to expand
    except ET.ParseError as error:
        raise ProviderError(f"EC2's answer is no XML: {error}") from error
    found = expect_object(_value(root), "EC2's answer")
    if "Errors" in found:
        raise ProviderError(f"EC2: {found['Errors']}")
    names = dict(LISTS.values())
    return {names.get(name, name): value or [] if name in names else value for name, value in found.items()}


def _value(element: ET.Element, depth: int = 0) -> Any:
    """An element's text; a list where its children are named `item`, else an object."""
    if depth > MAX_DEPTH:
        raise ProviderError(f"EC2's answer is nested more than {MAX_DEPTH} deep")
    if not len(element):
        return (element.text or "").strip()
    children = [(_name(child), _value(child, depth + 1)) for child in element]
    if children[0][0] == "Item":
        return [value for _, value in children]
    return dict(children)


def _name(element: ET.Element) -> str:
    local = element.tag.rpartition("}")[2]
    return local[:1].upper() + local[1:]
