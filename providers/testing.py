"""Test class to inherit for every provider, also in other packages. Needs pytest and responses.

    class TestLambda(ProviderConformance):
        provider = LambdaCloud
        env = {"LAMBDA_API_KEY": "key"}
        answers = (Answer("https://cloud.lambda.ai/api/v1/instance-types", INSTANCE_TYPES),)

        @staticmethod
        def canonical(label, memory_gb): ...

`answers` are all calls of one fetch with small answers in the documented shape. A provider without calls has none and overrides `make`.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import product
from typing import Any, ClassVar

import pytest
import responses

from providers.base import Context
from providers.offer import NO_TERMS, Fetched, Provider, ProviderError

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NO_VALUES: tuple[object, ...] = ("", "NaN", "not a number", [], {})
"""What is wrong in every field that has to do with a price."""
WRONG_VALUES: tuple[object, ...] = (*NO_VALUES, None, 0, -1, True)
"""These and what may be right somewhere: null for what is not sold, a number of billionths, a flag."""
FAILURES: Mapping[str, tuple[int, str]] = {
    "a web page": (200, "<!doctype html><html><body>Please log in</body></html>"),
    "a truncated answer": (200, '{"data": [{"name": "h10'),
    "nothing": (200, ""),
    "null": (200, "null"),
    "a number": (200, "17"),
    "an empty object": (200, "{}"),
    "expired credentials": (401, '{"error": "expired"}'),
    "no permission": (403, '{"error": "forbidden"}'),
    "not found": (404, "not found"),
    "an error of the server": (500, "oops"),
}


@dataclass(frozen=True)
class RecordedAnswer:
    """One call and its answer: `body` is JSON, text or bytes. `url` may be a pattern."""

    url: str | re.Pattern[str]
    body: Any
    method: str = "GET"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def register(self, mock: responses.RequestsMock) -> None:
        """Register this answer with `mock`."""
        raw = isinstance(self.body, str | bytes)
        mock.add(
            self.method, self.url, body=self.body if raw else json.dumps(self.body), status=self.status, headers=dict(self.headers) or None
        )


@contextmanager
def mock_answers(answers: tuple[RecordedAnswer, ...]) -> Iterator[responses.RequestsMock]:
    """Context in which the source gives these answers and no other address answers, whatever proxies the machine has."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock, pytest.MonkeyPatch.context() as patch:
        patch.setattr("requests.sessions.get_environ_proxies", lambda *_, **_options: {})
        for answer in answers:
            answer.register(mock)
        yield mock


class ProviderConformance:
    """Test class to inherit: checks a provider against what the service relies on."""

    provider: ClassVar[type[Provider]]
    answers: ClassVar[tuple[RecordedAnswer, ...]] = ()
    env: ClassVar[Mapping[str, str]] = {}
    one_row_a_price: ClassVar[bool] = True
    """False where a price is made of many rows, as a median is: it may move when one of them is wrong."""

    @staticmethod
    def canonical(label: str, memory_gb: float | None) -> str | None:
        """Canonical accelerator of a label; pass the service's own function."""
        raise NotImplementedError

    def context(self, env: Mapping[str, str] | None = None) -> Context:
        """Context of the provider under test."""
        return Context(canonical=self.canonical, env=self.env if env is None else env, clock=lambda: NOW)

    def make(self, env: Mapping[str, str] | None = None) -> Provider:
        """A provider made as the service makes it."""
        return self.provider(self.context(env))  # type: ignore[call-arg]  # every provider takes its context

    def fetched(self, answers: tuple[RecordedAnswer, ...] | None = None) -> Fetched:
        """Result of one fetch."""
        with mock_answers(self.answers if answers is None else answers):
            return self.make().fetch()

    def test_it_brings_offers_with_canonical_names_prices_dates_and_sources(self) -> None:
        """Whatever it brings can be planned with, and can be traced."""
        fetched = self.fetched()
        assert fetched.offers
        for offer in fetched.offers:
            assert self.canonical(offer.accelerator, None) == offer.accelerator, offer
            assert offer.usd_per_hour > 0
            assert offer.observed_at <= NOW
            assert all((offer.provider, offer.region, offer.instance_type, offer.source)), offer

    def test_one_thing_has_one_price(self) -> None:
        """Two prices of the same thing would make answers depend on their order."""
        identities = [offer.identity for offer in self.fetched().offers]
        assert len(identities) == len(set(identities))

    def test_spot_is_not_above_on_demand(self) -> None:
        """A spot price above the on-demand price of the same thing is a misread row."""
        fetched = self.fetched()
        on_demand = {replace(offer, market="list").identity: offer for offer in fetched.offers if offer.pricing == "on_demand"}
        for offer in fetched.offers:
            same = on_demand.get(replace(offer, pricing="on_demand", market="list", terms=NO_TERMS).identity, offer)
            assert offer.usd_per_hour <= same.usd_per_hour

    def test_the_same_answer_makes_the_same_snapshot(self) -> None:
        """A refresh that brings nothing new is recognised by its name."""
        assert self.fetched().snapshot == self.fetched().snapshot

    @pytest.mark.parametrize("name", FAILURES)
    def test_trouble_at_the_source_is_a_provider_error(self, name: str) -> None:
        """The caller keeps its last good prices; nothing wrong becomes a price."""
        status, body = FAILURES[name]
        if not self.answers:
            pytest.skip("makes no call")
        with pytest.raises(ProviderError):
            self.fetched(tuple(replace(answer, status=status, body=body) for answer in self.answers))

    def test_a_wrong_value_anywhere_costs_its_row_at_most_and_never_becomes_a_price(self) -> None:
        """Every field of every answer is put wrong in turn: what comes back are the same prices of the same things or a ProviderError."""
        right = {offer.identity: offer.usd_per_hour for offer in self.fetched().offers}
        for (number, answer), value in product(enumerate(self.answers), WRONG_VALUES):
            for wrong in mutate(answer.body, (value,)):
                changed = (*self.answers[:number], replace(answer, body=wrong), *self.answers[number + 1 :])
                try:
                    fetched = self.fetched(changed)
                except ProviderError:
                    continue
                if value in NO_VALUES and self.one_row_a_price:
                    for offer in fetched.offers:
                        assert offer.usd_per_hour == right.get(offer.identity, offer.usd_per_hour), wrong

    def test_without_credentials_it_names_them_and_makes_no_call(self) -> None:
        """Not configured is no outage: the error names the variable."""
        if not self.provider.credentials:
            pytest.skip("needs no credentials")
        with mock_answers(self.answers) as mock, pytest.raises(ProviderError, match=self.provider.credentials[0]):
            self.make(env={}).fetch()
        assert not mock.calls


def mutate(body: object, values: tuple[object, ...] = WRONG_VALUES) -> Iterator[object]:
    """Copies of the body, each with one value replaced."""
    for path in _paths(body):
        for wrong in values:
            changed = copy.deepcopy(body)
            target: Any = changed
            for step in path[:-1]:
                target = target[step]
            target[path[-1]] = wrong
            yield changed


def _paths(value: object, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if above:
        yield above
    children: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield from _paths(child, (*above, name))
