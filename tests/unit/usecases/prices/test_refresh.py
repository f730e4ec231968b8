"""Refreshing prices: what is kept of an answer, what is noted of a failure, and who is asked when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from providers.offer import Offer, ProviderError, Rejected
from service.config import Settings
from service.context import AppContext
from service.domain.errors import StoreUnavailable
from service.domain.jobs import ignore_progress
from service.domain.price_books import BookManifest
from service.domain.prices import PriceChange
from service.store import HistoryFilter
from service.usecases.prices.provider_access import backoff
from service.usecases.prices.refresh import RefreshTrigger, refresh_due, refresh_local, refresh_prices, request_refresh
from tests.support.snapshots import stored_snapshots
from tests.unit.usecases.sources import HOUR, NOW, Nimbus, Sheet, Shipped, World, context_of, offer


@pytest.fixture
def world() -> World:
    """A cloud with one offer at noon."""
    return World()


@pytest.fixture
def context(settings: Settings, world: World) -> Iterator[AppContext]:
    """A context on a migrated database that knows the shipped prices and one configured cloud."""
    with context_of(settings, world, Nimbus(world), {"NIMBUS_KEY": "k"}) as made:
        yield made


def refresh(context: AppContext, **said: bool) -> dict[str, Any]:
    """One run of the job."""
    return refresh_prices(context, {"provider": "nimbus", **said}, ignore_progress)


def kept(context: AppContext) -> tuple[Offer, ...]:
    """The last good offers."""
    found = context.store.load_snapshot(str(context.store.provider_state("nimbus").snapshot))
    assert found is not None
    return found.offers


def history(context: AppContext) -> list[PriceChange]:
    """All rows about the cloud, as they were added."""
    rows = context.store.price_changes(HistoryFilter({"asked": ("nimbus",)}), 1000)
    return sorted(rows, key=lambda row: row.id)


class TestAGoodAnswer:
    def test_it_is_kept_as_a_snapshot_a_state_and_the_next_book(self, context: AppContext) -> None:
        """The book holds the shipped prices too, without having been told to keep those first."""
        done = refresh(context)
        state = context.store.provider_state("nimbus")
        assert done == {"provider": "nimbus", "snapshot": state.snapshot, "new": True, "offers": 1, "rejected": 0, "quarantined": 0}
        assert (state.verified_at, state.failures, state.offers, state.fresh_for_s) == (NOW, 0, 1, 3600)
        assert [part.snapshot for part in context.store.current_manifest().parts] == [state.snapshot, "snapshot-1"]
        assert [row.usd_per_hour for row in context.catalog.book(context.store.current_manifest().book).offers] == [Decimal(40)]

    def test_the_same_again_is_only_noted(self, context: AppContext, world: World) -> None:
        """No snapshot, no history, no book: but the prices are as new as that."""
        first, book = refresh(context)["snapshot"], context.store.current_manifest().book
        world.now += HOUR
        again = refresh(context)
        assert (again["snapshot"], again["new"], len(history(context))) == (first, False, 1)
        assert context.store.current_manifest().book == book
        assert context.store.provider_state("nimbus").verified_at == NOW + HOUR
        assert len(stored_snapshots(context.store, "nimbus")) == 1

    def test_history_has_a_row_for_what_is_new_changed_or_gone(self, context: AppContext, world: World) -> None:
        """And the price before beside each change."""
        world.brings(offer("40"), offer("42", region="west"))
        refresh(context)
        world.now += HOUR
        world.brings(offer("44"), offer("9", instance_type="h100x1", accelerator_count=1))
        refresh(context)
        assert [(row.region, row.instance_type, row.usd_per_hour, row.usd_per_hour_before) for row in history(context)] == [
            ("east", "h100x8", Decimal(40), None),
            ("west", "h100x8", Decimal(42), None),
            ("east", "h100x8", Decimal(44), Decimal(40)),
            ("east", "h100x1", Decimal(9), None),
            ("west", "h100x8", None, Decimal(42)),
        ]

    def test_availability_is_dated_by_when_it_was_first_seen(self, context: AppContext, world: World) -> None:
        """As long as it stays the date does; a change of it is history too."""
        seen = []
        for availability in ("live", "live", "listed", "live"):
            world.brings(offer(availability=availability))
            refresh(context)
            seen.append(kept(context)[0].available_since)
            world.now += HOUR
        assert seen == [NOW, NOW, NOW + 2 * HOUR, NOW + 3 * HOUR]
        assert [row.availability for row in history(context)] == ["live", "listed", "live"]

    def test_what_was_rejected_and_left_out_is_counted_and_shown(self, context: AppContext, world: World) -> None:
        """The first hundred of each."""
        world.brings(offer(), rejected=tuple(Rejected(f"row {n}", "no price") for n in range(150)), skipped={"CPU only": 7})
        refresh(context)
        state = context.store.provider_state("nimbus")
        assert (state.rejected_count, len(state.rejected), state.rejected[0]) == (150, 100, {"row": "row 0", "reason": "no price"})
        assert state.skipped == {"CPU only": 7}

    def test_of_a_thousand_reasons_the_commonest_are_told(self, context: AppContext, world: World) -> None:
        """The labels in them are the source's own; the others are one number."""
        world.brings(offer(), skipped={f"no canonical name: {n} " + "x" * 1000: n for n in range(1, 1001)})
        refresh(context)
        told = context.store.provider_state("nimbus").skipped
        assert (len(told), sum(told.values()), told["other reasons"]) == (101, 500_500, 405_450)
        assert next(iter(told)) == ("no canonical name: 1000 " + "x" * 1000)[:300]

    def test_texts_of_a_source_that_are_no_texts_can_be_told(self, context: AppContext, world: World) -> None:
        """JSON may hold half of a character; the database takes none, and neither does an answer."""
        half = "half \ud800"
        world.brings(offer(), rejected=(Rejected(half, half),), skipped={half: 1})
        refresh(context)
        state = context.store.provider_state("nimbus")
        assert (state.rejected, state.skipped) == ([{"row": "half ?", "reason": "half ?"}], {"half ?": 1})
        world.answer = ProviderError(half)
        assert "error" in refresh(context)
        assert context.store.provider_state("nimbus").last_error == "half ?"

    @pytest.mark.parametrize("changes", [{"accelerator_count": 2**31}, {"usd_per_hour": Decimal("40." + "0" * 40)}])
    def test_a_number_that_no_database_takes_costs_its_row_alone(self, context: AppContext, world: World, changes: dict[str, Any]) -> None:
        """SQLite takes more than PostgreSQL; the rule is the same on both."""
        world.brings(offer(), offer(region="west", **changes))
        assert refresh(context)["rejected"] == 1
        assert [row.region for row in kept(context)] == ["east"]
        assert "no numbers that can be kept" in context.store.provider_state("nimbus").rejected[0]["reason"]

    @pytest.mark.parametrize("region", ["x" * 201, "a\0b", "a\ud800b"])
    def test_a_text_that_no_database_takes_costs_its_row_alone(self, context: AppContext, world: World, region: str) -> None:
        """It is named; the others are kept."""
        world.brings(offer(), offer(region=region))
        assert refresh(context)["rejected"] == 1
        assert [row.region for row in kept(context)] == ["east"]
        assert context.store.provider_state("nimbus").rejected[0]["reason"] == "region is no text that can be kept"

    def test_an_interrupted_save_goes_on(self, context: AppContext, world: World) -> None:
        """The attempt that is stopped leaves the state as it was; the next one finds what is there."""

        def stop(done: int, total: int) -> None:
            raise InterruptedError

        with pytest.raises(InterruptedError):
            refresh_prices(context, {"provider": "nimbus"}, stop)
        assert context.store.provider_state("nimbus").snapshot is None
        assert refresh(context)["new"]
        assert len(kept(context)) == 1


class TestAnAbsurdAnswer:
    def test_a_tenfold_jump_is_quarantined_and_the_last_good_price_stays(self, context: AppContext, world: World) -> None:
        """With its old date, however often the jump comes; history does not learn of it."""
        refresh(context)
        world.brings(offer("40000"))
        for _ in range(2):
            world.now += HOUR
            assert refresh(context)["quarantined"] == 1
        assert [(row.usd_per_hour, row.observed_at) for row in kept(context)] == [(Decimal(40), NOW)]
        assert len(history(context)) == 1
        (bad,) = context.store.provider_state("nimbus").quarantined
        assert bad["usd_per_hour"] == 40000
        assert "jumped from 5.0000 to 5000.0000" in bad["reason"]
        book = context.catalog.current
        assert [book.is_stale(row, world.now) for row in book.offers] == [True]

    def test_the_first_answer_is_measured_by_the_shipped_prices(self, context: AppContext, world: World) -> None:
        """In thousands it is believed no more than later; the right one is, when it comes."""
        world.brings(offer("40000"))
        assert refresh(context)["quarantined"] == 1
        assert kept(context) == ()
        world.now += HOUR
        world.brings(offer("40"))
        assert refresh(context)["quarantined"] == 0
        assert [row.usd_per_hour for row in context.catalog.current.offers if row.provider == "nimbus"] == [Decimal(40)]

    def test_an_operator_can_accept_a_jump(self, context: AppContext, world: World) -> None:
        """Then it is the last good price."""
        refresh(context)
        world.brings(offer("400"))
        assert refresh(context, accept_jumps=True)["quarantined"] == 0
        assert [row.usd_per_hour for row in kept(context)] == [Decimal(400)]

    def test_prices_that_are_right_again_are_served_again(self, context: AppContext, world: World) -> None:
        """As new as the answer that brought them."""
        refresh(context)
        for usd in ("40000", "40"):
            world.now += HOUR
            world.brings(offer(usd))
            refresh(context)
        (row,) = context.catalog.current.offers
        assert (row.usd_per_hour, row.observed_at) == (Decimal(40), NOW + 2 * HOUR)

    def test_nothing_at_all_is_a_failure(self, context: AppContext, world: World) -> None:
        """A cloud does not sell out of everything, with its prices, from one hour to the next."""
        refresh(context)
        world.brings()
        assert refresh(context)["error"] == "nimbus brought no offer at all, where it had 1"
        assert len(kept(context)) == 1

    def test_a_region_that_could_not_be_read_keeps_its_last_prices(self, context: AppContext, world: World) -> None:
        """With their date; what is gone from a region that was read is gone."""
        world.brings(offer(), offer(region="west"), offer(region="south"))
        refresh(context)
        world.now += HOUR
        world.brings(offer(), rejected=(Rejected("west", "timed out"),))
        refresh(context)
        assert {row.region: row.observed_at for row in kept(context)} == {"east": NOW + HOUR, "west": NOW}


class TestAFailure:
    def test_it_is_noted_and_costs_no_price(self, context: AppContext, world: World) -> None:
        """The job is done; the state says what happened and when it is tried again."""
        refresh(context)
        world.answer = ProviderError("nimbus answered 503")
        world.now += HOUR
        assert refresh(context) == {"provider": "nimbus", "error": "nimbus answered 503"}
        state = context.store.provider_state("nimbus")
        assert (state.failures, state.last_error, state.last_error_at, state.verified_at) == (1, "nimbus answered 503", world.now, NOW)
        assert state.retry_at == world.now + backoff("nimbus", 1)
        assert len(kept(context)) == 1

    def test_an_error_of_the_providers_own_is_one_too(self, context: AppContext, world: World) -> None:
        """Other packages' code may raise anything; its kind is named."""
        world.answer = KeyError("price")
        assert refresh(context)["error"] == "KeyError: 'price'"
        assert context.store.provider_state("nimbus").failures == 1

    @pytest.mark.parametrize("trouble", [OSError, ProviderError])
    def test_no_credential_is_told(
        self, context: AppContext, world: World, trouble: type[Exception], caplog: pytest.LogCaptureFixture
    ) -> None:
        """Other libraries' errors hold the address that was asked, and that the key; so may a row that was rejected."""
        key = "sk-0123456789"
        keyed = replace(context, providers=replace(context.providers, env={"NIMBUS_KEY": key}))
        world.brings(offer(), rejected=(Rejected("east", f"no answer from https://nimbus/?key={key}"),))
        refresh(keyed)
        world.answer = trouble(f"no answer from https://nimbus/?key={key}")
        told = str([refresh(keyed), keyed.store.provider_state("nimbus"), caplog.text])
        assert told.count("https://nimbus/?key=…") >= 3
        assert key not in told

    def test_a_provider_that_failed_is_left_alone_unless_somebody_asks(self, context: AppContext, world: World) -> None:
        """The next good answer forgets the failures and the error."""
        world.answer = ProviderError("down")
        refresh(context)
        assert "left alone" in refresh(context)["skipped"]
        assert world.asked == 1
        world.brings(offer())
        assert refresh(context, by_hand=True)["new"]
        state = context.store.provider_state("nimbus")
        assert (state.failures, state.retry_at, state.last_error, state.last_error_at) == (0, None, None, None)

    def test_only_prices_that_there_are_stay(self, context: AppContext, world: World, caplog: pytest.LogCaptureFixture) -> None:
        """The log promises no others."""
        world.answer = ProviderError("down")
        refresh(context)
        assert "nimbus failed: down" in caplog.text
        world.brings(offer())
        refresh(context, by_hand=True)
        world.answer = ProviderError("down")
        refresh(context)
        assert "nimbus failed, its last good prices stay: down" in caplog.text

    def test_pauses_grow_to_an_hour_and_are_everybodys_own(self) -> None:
        """Twice as long after each failure, always the same for the same provider and failure."""
        lengths = [backoff("nimbus", failures) for failures in range(1, 20)]
        assert timedelta(minutes=1.6) <= lengths[0] <= timedelta(minutes=2)
        assert all(timedelta(minutes=48) <= length <= HOUR for length in lengths[6:])
        assert lengths == [backoff("nimbus", failures) for failures in range(1, 20)]
        assert backoff("nimbus", 1) != backoff("cirrus", 1)
        assert backoff("nimbus", 10**9) <= HOUR

    def test_without_its_credentials_it_is_no_failure(self, context: AppContext, world: World) -> None:
        """It says which are missing and calls nobody."""
        bare = replace(context, providers=replace(context.providers, env={}))
        assert refresh(bare) == {"provider": "nimbus", "skipped": "not set: NIMBUS_KEY"}
        state = context.store.provider_state("nimbus")
        assert (state.unconfigured, state.failures, world.asked) == ("not set: NIMBUS_KEY", 0, 0)
        refresh(context)
        assert context.store.provider_state("nimbus").unconfigured is None

    def test_a_missing_package_is_no_failure_either(self, context: AppContext, world: World) -> None:
        """Optional extras are optional, wherever the provider finds out; the clock asks again, but not every minute."""
        try:
            try:
                raise ModuleNotFoundError("No module named 'gpuhunt'")
            except ImportError as missing:
                raise ProviderError("gpuhunt is not installed") from missing
        except ProviderError as error:
            told = error
        for trouble, said in ((ModuleNotFoundError("no x"), "an optional package is missing: no x"), (told, "gpuhunt is not installed")):
            world.answer = trouble
            assert refresh(context)["skipped"] == said
            state = context.store.provider_state("nimbus")
            assert (state.unconfigured, state.failures) == (said, 0)
        assert refresh_due(context) == ()
        world.now += HOUR
        assert [job.payload["provider"] for job in refresh_due(context)] == ["nimbus"]

    @pytest.mark.parametrize(("settings_say", "reason"), [({"offline": True}, "offline"), ({"providers": ("aws",)}, "off")])
    def test_what_the_settings_forbid_is_skipped(
        self, context: AppContext, world: World, settings_say: dict[str, Any], reason: str
    ) -> None:
        """Also by hand."""
        quiet = replace(context, settings=replace(context.settings, **settings_say))
        assert refresh(quiet, by_hand=True)["skipped"] == reason
        assert world.asked == 0


class TestTwoAtOnce:
    """A worker that slept through its lease, an operator at the command line: two may ask the same source at the same time."""

    def test_an_answer_that_was_overtaken_is_void(self, context: AppContext, world: World) -> None:
        """It may be older than the one that was kept; the price that counts has one row of history."""
        refresh(context)

        def another() -> None:
            world.now += HOUR
            world.brings(offer("44"))
            refresh(context)

        world.meanwhile = another
        assert refresh(context) == {"provider": "nimbus", "skipped": "another answer of nimbus was kept meanwhile"}
        assert [row.usd_per_hour for row in kept(context)] == [Decimal(44)]
        assert [row.usd_per_hour for row in history(context)] == [Decimal(40), Decimal(44)]

    def test_the_same_first_answer_is_history_once(self, context: AppContext, world: World) -> None:
        """Whoever of two workers comes second finds it kept."""
        world.meanwhile = lambda: refresh(context)
        assert "skipped" in refresh(context)
        assert len(history(context)) == 1

    def test_an_operators_word_holds_all_the_same(self, context: AppContext, world: World) -> None:
        """The other refresh, which knew nothing of it, had put the last good price back."""
        refresh(context)
        world.brings(offer("400"))
        world.meanwhile = lambda: (setattr(world, "now", world.now + HOUR), refresh(context))
        assert refresh(context, accept_jumps=True)["quarantined"] == 0
        assert [row.usd_per_hour for row in kept(context)] == [Decimal(400)]

    def test_a_failure_takes_no_answer_back(self, context: AppContext, world: World) -> None:
        """What was kept meanwhile stays, and is no failure."""
        refresh(context)
        world.answer = ProviderError("down")

        def another() -> None:
            world.now += HOUR
            world.brings(offer("44"))
            refresh(context)

        world.meanwhile = another
        assert refresh(context)["error"] == "down"
        assert context.store.provider_state("nimbus").failures == 0
        assert [row.usd_per_hour for row in kept(context)] == [Decimal(44)]


class TestWhen:
    def test_one_refresh_a_provider_at_a_time(self, context: AppContext) -> None:
        """Asking again while a refresh is under way gives the same job, and one message; an operator's word has a job of its own."""
        first = request_refresh(context, "nimbus")
        assert request_refresh(context, "nimbus", by_hand=True) == first
        assert context.queue.sent == [first.id]  # type: ignore[attr-defined]
        assert request_refresh(context, "nimbus", accept_jumps=True).payload == {"provider": "nimbus", "accept_jumps": True}

    def test_the_clock_asks_for_what_is_due(self, context: AppContext, world: World) -> None:
        """What was never read at once, the rest a little before its promise runs out, failed ones after their pause."""
        assert {job.payload["provider"] for job in refresh_due(context)} == {"nimbus", "snapshot"}
        refresh(context)
        assert refresh_due(context) == ()
        world.now += HOUR
        assert [job.payload["provider"] for job in refresh_due(context)] == ["nimbus"]
        world.answer = ProviderError("down")
        refresh(context)
        assert refresh_due(context) == ()
        world.now += HOUR
        assert [job.payload["provider"] for job in refresh_due(context)] == ["nimbus"]

    def test_the_clock_asks_nobody_who_is_not_configured(self, context: AppContext) -> None:
        """It notes what is missing."""
        bare = replace(context, providers=replace(context.providers, env={}))
        assert [job.payload["provider"] for job in refresh_due(bare)] == ["snapshot"]
        assert context.store.provider_state("nimbus").unconfigured == "not set: NIMBUS_KEY"

    def test_a_service_that_starts_reads_what_lies_on_its_machine(self, context: AppContext, world: World) -> None:
        """Each time: a new release brings new prices."""
        load = lambda name: Shipped() if name == "snapshot" else Sheet(world)  # noqa: E731
        files = replace(context, providers=replace(context.providers, load=load))
        for _ in range(2):
            (job,) = refresh_local(files)
            assert job.payload["provider"] == "snapshot"
            refresh_prices(context, job.payload, ignore_progress)

    def test_prices_that_have_run_out_are_asked_for_once_a_minute(self, context: AppContext, world: World) -> None:
        """By each process that serves them; not before, and not while the provider is left alone."""
        refresh(context)
        process = [0.0]
        overdue = RefreshTrigger(context, lambda: process[0])
        overdue(context.store.current_manifest())
        assert context.store.open_jobs("refresh_prices") == ()
        world.now += 2 * HOUR
        for _ in range(3):
            overdue(context.store.current_manifest())
        (job,) = context.store.open_jobs("refresh_prices")
        assert job.payload == {"provider": "nimbus"}
        context.store.request_cancel(job.id, world.now)
        overdue(context.store.current_manifest())
        assert context.store.open_jobs("refresh_prices") == ()
        process[0] += 61
        overdue(context.store.current_manifest())
        assert len(context.store.open_jobs("refresh_prices")) == 1

    def test_nobody_asks_for_what_may_not_or_cannot_be_asked(self, context: AppContext, world: World) -> None:
        """Offline, left out by the settings, or without its credentials: a job would only find that out again."""
        refresh(context)
        heads = context.store.current_manifest()
        world.now += 2 * HOUR
        for quiet in (replace(context.settings, offline=True), replace(context.settings, providers=("aws",))):
            RefreshTrigger(replace(context, settings=quiet))(heads)
        refresh(replace(context, providers=replace(context.providers, env={})))
        RefreshTrigger(context)(heads)
        assert context.store.open_jobs("refresh_prices") == ()

    def test_a_database_that_cannot_be_written_stops_nobody(
        self, context: AppContext, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The prices are served; the log says that no refresh can be asked for."""
        refresh(context)
        heads: BookManifest = context.store.current_manifest()
        world.now += 2 * HOUR

        class Pulled:
            def provider_state(self, name: str) -> None:
                raise StoreUnavailable("read-only")

        RefreshTrigger(replace(context, store=Pulled()))(heads)  # type: ignore[arg-type]
        assert "no refresh of nimbus can be requested: read-only" in caplog.text
