"""What stands around the training of a run: failures, storage, people, the calendar and the grid; every default noted with its source."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from service.domain.errors import UnknownName
from service.domain.quantities import Range
from service.domain.training.run import Energy, Network, Overhead, Personnel, Schedule
from service.presets.hardware.accelerators import load_accelerators
from service.presets.hardware.energy import find_power
from service.presets.hardware.regions import find_region
from service.usecases.resolution import run_settings
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.price import Price
from service.usecases.resolution.run_settings import resolve_energy
from tests.unit.usecases.requests import noted, pointer_of

H100 = load_accelerators()["NVIDIA-H100-80GB-SXM"]


class TestFailures:
    """How the machine fails."""

    def test_absent_the_familys_published_figures_are_taken(self) -> None:
        """Everything is noted, with the published runs it is from."""
        notes = AssumptionLog()
        found = run_settings.resolve_failures({}, H100, "on_demand", 2026, notes)
        assert found.mttf_hours_per_accelerator.p10 < found.mttf_hours_per_accelerator.p50
        assert found.checkpoint_interval_minutes is None
        assert set(noted(notes)) == {
            f"failures.{name}"
            for name in (
                "mttf_hours_per_accelerator", "detection_minutes", "restart_minutes", "checkpoint_write_minutes", "spare_share",
                "checkpoint_interval_minutes", "checkpoint_blocking_share", "preemptions_per_node_hour",
            )
        }  # fmt: skip
        assert noted(notes)["failures.checkpoint_interval_minutes"] == "auto"

    def test_stated_figures_are_certain(self) -> None:
        """A stated MTTF has no range, zero minutes are zero minutes."""
        given = {
            "mttf_hours_per_accelerator": 50_000.0, "detection_minutes": 0.0, "restart_minutes": 15.0, "checkpoint_write_minutes": 2.0,
            "checkpoint_interval_minutes": 30.0, "checkpoint_blocking_share": 0.1, "preemptions_per_node_hour": 0.01, "capacity_share": 0.8,
            "spare_share": 0.0,
        }  # fmt: skip
        notes = AssumptionLog()
        found = run_settings.resolve_failures(given, H100, "spot", 2026, notes)
        assert found.mttf_hours_per_accelerator == Range.exactly(50_000)
        assert (found.detection_minutes, found.checkpoint_interval_minutes, found.spare_share) == (0, 30, 0)
        assert noted(notes) == {}

    def test_checkpoints_go_on_beside_training_where_the_software_writes_them_so(self) -> None:
        """From 2024 on; the share that blocks and the software's recovery are noted with their source."""
        for year, blocking, restart in ((2022, 1.0, 15.0), (2024, 0.05, 8.0), (2026, 0.05, 4.0)):
            notes = AssumptionLog()
            found = run_settings.resolve_failures({}, H100, "on_demand", year, notes)
            assert (found.checkpoint_blocking_share, found.restart_minutes) == (blocking, restart)
            assert noted(notes)["failures.checkpoint_blocking_share"] == blocking

    def test_a_stated_write_is_one_that_training_waits_for(self) -> None:
        """The caller's minutes are lost as stated, unless they state the share that blocks."""
        waits, goes_on = (
            run_settings.resolve_failures({"checkpoint_write_minutes": 2.0} | share, H100, "on_demand", 2026, AssumptionLog())
            for share in ({}, {"checkpoint_blocking_share": 0.1})
        )
        assert (waits.checkpoint_blocking_share, goes_on.checkpoint_blocking_share) == (1.0, 0.1)

    def test_spot_capacity_is_preempted_unless_the_caller_knows_better(self) -> None:
        """Without a rate of the caller's a published one is taken, and warned of."""
        notes = AssumptionLog()
        assert run_settings.resolve_failures({}, H100, "spot", 2026, notes).preemptions_per_node_hour > 0
        assert "failures.preemptions_per_node_hour" in noted(notes)
        assert any("spot" in warning for warning in notes.warnings)

    def test_spot_capacity_is_waited_for_unless_the_caller_knows_better(self) -> None:
        """The share of the time in traces, with its source and range; a stated one is silent, and other capacity is always there."""
        notes = AssumptionLog()
        assert run_settings.resolve_failures({}, H100, "spot", 2026, notes).capacity_share == 0.59
        assert noted(notes)["failures.capacity_share"] == 0.59
        assert any("not always available" in warning for warning in notes.warnings)
        assert any("spot-traces" in assumption.source and "0.31 to 0.89" in assumption.source for assumption in notes.assumptions)
        stated = AssumptionLog()
        assert run_settings.resolve_failures({"capacity_share": 0.9}, H100, "spot", 2026, stated).capacity_share == 0.9
        assert run_settings.resolve_failures({}, H100, "on_demand", 2026, stated).capacity_share == 1
        assert "failures.capacity_share" not in noted(stated)

    def test_a_stated_rate_of_preemptions_is_certain(self) -> None:
        """The published one has a wide range."""
        usual, own = (
            run_settings.resolve_failures(given, H100, "spot", 2026, AssumptionLog()).preemption_spread
            for given in ({}, {"preemptions_per_node_hour": 0.01})
        )
        assert usual.p90 > 4 * usual.p10
        assert own.p10 == own.p90 == 1


class TestWhatIsBeside:
    """Storage, network, people, overhead and calendar."""

    def test_a_runs_own_checkpoints_are_stored(self) -> None:
        """No data set or logs unless stated; how many and how long is noted."""
        notes = AssumptionLog()
        found = run_settings.resolve_storage({"usd_per_tb_month": 0.0}, notes)
        assert (found.dataset_tb, found.logs_tb, found.usd_per_tb_month) == (0, 0, 0)
        assert set(noted(notes)) == {f"storage.{name}" for name in ("dataset_tb", "checkpoints_kept", "retention_months", "logs_tb")}

    def test_a_section_left_out_costs_nothing_and_is_one_note(self) -> None:
        """Not one a field."""
        notes = AssumptionLog()
        assert run_settings.resolve_network({}, notes) == Network(0, 90)
        assert run_settings.resolve_personnel({}, notes) == Personnel(0, 0, 0, 90)
        assert noted(notes) == {"network": None, "personnel": None}
        assert run_settings.resolve_network({"egress_tb": 3.0}, notes) == Network(3, 90)
        assert noted(notes)["network.usd_per_tb"] == 90

    def test_a_section_without_overhead_is_one_note(self) -> None:
        """That a budget has none is an assumption; stated shares are silent."""
        notes = AssumptionLog()
        assert run_settings.resolve_overhead({}, notes) == Overhead(0, 0, 0)
        assert noted(notes) == {"overhead": None}
        stated = AssumptionLog()
        assert run_settings.resolve_overhead({"evaluation": 0.05, "debugging": 0.05, "reruns": 0.1}, stated) == Overhead(0.05, 0.05, 0.1)
        assert (stated.warnings, noted(stated)) == ([], {})

    def test_a_calendar_needs_its_days_in_order(self) -> None:
        """A deadline may be the day of the start."""
        today, first, last = date(2026, 11, 23), date(2027, 1, 4), date(2027, 6, 30)
        given = {"start": first, "deadline": last, "queue_hours": 24.0, "maintenance_hours_per_week": 4.0}
        assert run_settings.resolve_schedule(given, today, AssumptionLog()) == Schedule(first, last, 24, 4)
        assert run_settings.resolve_schedule({"start": first, "deadline": first}, today, AssumptionLog()).deadline == first
        assert run_settings.resolve_schedule({}, today, AssumptionLog()) == Schedule(None, None, 0, 0)
        for unordered in ({"start": last, "deadline": first}, {"deadline": date(2026, 11, 22)}):
            assert pointer_of(lambda given=unordered: run_settings.resolve_schedule(given, today, AssumptionLog())) == "/schedule/deadline"

    def test_a_deadline_alone_counts_from_today(self) -> None:
        """And says so."""
        today, last = date(2026, 11, 23), date(2027, 6, 30)
        notes = AssumptionLog()
        found = run_settings.resolve_schedule({"deadline": last}, today, notes)
        assert (found.start, found.deadline) == (today, last)
        assert noted(notes)["schedule.start"] == "2026-11-23"


class TestEnergy:
    """Where the energy is from."""

    STATED = Price(2.0, "caller", stale=False)
    BOUGHT = Price(6.88, "list", stale=False, provider="gcp", region="us-central1", pricing="on_demand")

    @pytest.mark.parametrize(
        ("given", "price", "key"),
        [
            ({"region": "country:FRA"}, BOUGHT, "country:FRA"),
            ({}, BOUGHT, "gcp:us-central1"),
            ({"region": None}, BOUGHT, "gcp:us-central1"),
            ({}, STATED, "world"),
        ],
    )
    def test_the_region_is_the_callers_else_the_offers_else_the_world(self, given: dict[str, Any], price: Price, key: str) -> None:
        """It is never guessed, and noted where it was not stated."""
        notes = AssumptionLog()
        found, region = resolve_energy(given, H100, price, notes), find_region(key)
        assert found.region == key
        assert (found.grid_gco2_per_kwh, found.pue) == (region.grid_gco2_per_kwh, region.pue)
        assert ("energy.region" in noted(notes)) == (given.get("region") is None)
        assert {"energy.grid_gco2_per_kwh", "energy.pue", "energy.watts_per_accelerator"} <= set(noted(notes))

    def test_stated_figures_replace_the_regions(self) -> None:
        """Grid, PUE, power and its price one by one; a grid of zero is one."""
        notes = AssumptionLog()
        given = {
            "region": "world", "grid_gco2_per_kwh": 0.0, "pue": 1.08, "watts_per_accelerator": 900.0, "usd_per_kwh": 0.07,
            "embodied_gco2e_per_accelerator_hour": 5.0,
        }  # fmt: skip
        assert resolve_energy(given, H100, self.BOUGHT, notes) == Energy("world", 0, 1.08, 900, 5, 0.07)
        assert noted(notes) == {}

    def test_power_is_the_parts_with_its_share_of_the_node(self) -> None:
        """Above its TDP times load alone, and noted with its source; power costs nothing extra in a cloud."""
        notes = AssumptionLog()
        found = resolve_energy({}, H100, self.BOUGHT, notes)
        assert found.watts_per_accelerator == pytest.approx(find_power(H100).watts.p50, abs=0.05)
        assert found.usd_per_kwh is None

    def test_an_unknown_region_is_refused_with_near_names(self) -> None:
        """The pointer leads to it."""
        assert (
            pointer_of(lambda: resolve_energy({"region": "gcp:us-centrall"}, H100, self.STATED, AssumptionLog()), UnknownName)
            == "/energy/region"
        )
