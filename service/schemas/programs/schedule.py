"""Request of a program: the calendar around its runs."""

from __future__ import annotations

from service.schemas.compound_fields import Items, Part
from service.schemas.fields import Choice, Count, Day, Number, Schema
from service.schemas.programs.fields import MAX_NAMES, DaysField, references, short_name
from service.schemas.training.machine import MAX_ACCELERATORS

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class MilestoneSchema(Schema):
    """A delivery or review: at the end of a day, or for a number of working days, from that day on where both are stated."""

    name = short_name(required=True, description="Name of the milestone")
    date = Day(description="Day on which it is reached")
    days = DaysField(description="Working days, or their percentiles")
    after = references("What it waits for; left out: the program's start")
    blocks = references("What waits for it: runs, milestones or whole tiers")


class MaintenanceSchema(Schema):
    """Weekly hours in which the machine is closed."""

    weekday = Choice(WEEKDAYS, required=True, description="Day of the week")
    start_hour = Number(required=True, minimum=0.0, below=24.0, description="Hour of the day at which it begins [h]")
    hours = Number(required=True, above=0.0, maximum=167.0, description="Length [h]")


class UpgradeSchema(Schema):
    """Days in which the machine is closed, both included."""

    name = short_name(required=True, description="Name of the upgrade")
    first = Day(required=True, description="First day without the machine")
    last = Day(required=True, description="Last day without the machine")


class ProgramScheduleSchema(Schema):
    """The calendar around the runs."""

    queue_days = DaysField(description="Waiting time before each run, or its percentiles [days]")
    milestones = Items(Part(MilestoneSchema), max_items=MAX_NAMES, description="Days that runs may wait for")
    maintenance = Items(Part(MaintenanceSchema), max_items=50, description="Weekly windows in which the machine does not work")
    upgrades = Items(Part(UpgradeSchema), max_items=50, description="Days on which the machine is away")
    holidays = Items(Day(), max_items=1000, description="Days without reviews and sign-offs")
    release_days = DaysField(description="Working days of the release process after the last gate")
    target_probability = Number(minimum=0.01, maximum=0.999, description="Probability of meeting the deadline to reach")
    accelerators = Items(Count(maximum=MAX_ACCELERATORS), max_items=5, description="Accelerator counts to try as deadline options")
    scope_share = Number(minimum=0.01, maximum=1.0, description="Share of each tier's tokens to try as a deadline option")
    report_every_days = Count(maximum=365, suffixes=False, description="Days between reports")
