"""Schemas of vendors' price sheets: uploads with corrections, proposals, kept files."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from marshmallow import ValidationError, fields

from providers.offer import MAX_TERM_HOURS, PRICINGS
from service.domain.price_files import DATE_ORDERS, PRICE_BASES, PRICE_PERIODS, TERM_UNITS
from service.formats.imports.quotes.sheets import MAX_COLUMNS, MAX_FILE_BYTES, MAX_ROWS
from service.formats.imports.quotes.vocabulary import CODES, FIELDS
from service.schemas.compound_fields import Part
from service.schemas.derive import derive, schema_of
from service.schemas.fields import Choice, Count, Day, Decimal, Flag, OwnField, Positive, Schema, Share, Text
from service.schemas.paging import page_schema
from service.usecases.prices.price_files import NAME, PriceFileAnswer, PriceFileDetail, PriceFileEntry

MAX_LABELS = 500
NAMED = "1 to 100 letters, digits, blanks and ._-, beginning with a letter or digit"


class Content(OwnField):
    """The bytes of a file in base64 (RFC 4648, section 4)."""

    longest = -(-MAX_FILE_BYTES // 3) * 4

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bytes:  # noqa: ARG002
        if not isinstance(value, str) or not value.isascii():
            raise ValidationError("must be a text in base64")
        if len(value) > self.longest:
            raise ValidationError(f"holds more than the {MAX_FILE_BYTES:,} bytes that a file may have")
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            raise ValidationError("is no base64 (RFC 4648, section 4, without line breaks)") from None

    def openapi(self) -> dict[str, Any]:
        """A string in base64."""
        return {"type": "string", "contentEncoding": "base64", "maxLength": self.longest}


class Named(OwnField):
    """An object of named values, each checked by `inner`."""

    def __init__(self, inner: fields.Field[Any], *, most: int, names: tuple[str, ...] = (), longest: int = 2000, **options: Any) -> None:
        super().__init__(**options)
        self.inner, self.most, self.names, self.longest = inner, most, names, longest

    def _bind_to_schema(self, field_name: str, parent: Any) -> None:
        super()._bind_to_schema(field_name, parent)
        self.inner._bind_to_schema(field_name, self)  # noqa: SLF001 - as marshmallow's List does

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ARG002
        if not isinstance(value, dict):
            raise ValidationError("must be an object")
        if len(value) > self.most:
            raise ValidationError(f"must have at most {self.most} members")
        found: dict[str, Any] = {}
        errors: dict[str, Any] = {}
        for name, below in value.items():
            if (self.names and name not in self.names) or len(name) > self.longest:
                errors[name] = [f"must be one of {', '.join(self.names)}" if self.names else "the name is too long"]
                continue
            try:
                found[name] = self.inner.deserialize(below)
            except ValidationError as error:
                errors[name] = error.messages
        if errors:
            raise ValidationError(errors)
        return found

    def openapi(self) -> dict[str, Any]:
        """An object of any or of these members."""
        names = {"propertyNames": {"enum": list(self.names)}} if self.names else {}
        return {"type": "object", "maxProperties": self.most, "additionalProperties": True, **names}


class CurrencyRateSchema(Schema):
    """Dollars for one unit of a currency, as of a day."""

    usd = Decimal(places=9, required=True, maximum=10**6, description="Dollars for one unit of the currency [USD]")
    at = Day(required=True, description="Day of the rate")


class QuoteSettingsSchema(Schema):
    """What the caller says of the whole sheet, where a column or cell does not."""

    provider = Text(max_length=64, description="The vendor")
    region = Text(description="Region")
    country = Text(max_length=3, min_length=2, description="ISO 3166-1 code of the country")
    accelerator = Text(description="Name of the accelerator")
    accelerator_count = Count(suffixes=False, maximum=10**6, description="Accelerators of an instance")
    pricing = Choice(PRICINGS, description="Kind of pricing")
    term_hours = Positive(maximum=MAX_TERM_HOURS, description="Length of the term [h]")
    term_unit = Choice(TERM_UNITS, description="Unit of bare numbers in the column of the term")
    upfront_share = Share(description="Share of the whole term's price paid at its start [1]")
    valid_until = Day(description="Last day on which the quote can be accepted")
    observed_at = Day(description="Day since which the prices hold; by default today")
    minimum_accelerators = Count(suffixes=False, maximum=10**6, description="Fewest accelerators that the prices are for")
    committed_usd = Decimal(places=2, minimum=1, description="Spend over the term that the buyer commits to [USD]")
    capacity = Flag(description="true: the accelerators are held for the buyer; false: a discount only")
    currency = Choice(CODES, description="Currency of the prices, whatever the cells say")
    price_basis = Choice(PRICE_BASES, description="What a price is for, whatever the cells say")
    price_period = Choice(PRICE_PERIODS, description="The time that a price is for, whatever the cells say")
    decimal_mark = Choice((".", ","), description="Mark before decimals in numbers in text")
    date_order = Choice(DATE_ORDERS, description="Order of day, month and year in dates in text")


class QuoteMappingSchema(Schema):
    """Corrections of what a proposal says."""

    sheet = Text(max_length=200, description="Name of the sheet to read")
    header_row = Count(suffixes=False, maximum=MAX_ROWS, description="Row that names the columns, from 1")
    columns = Named(
        Choice(FIELDS, allow_none=True),
        most=MAX_COLUMNS,
        description=f"Field by column letter or header, null: not used. Fields: {', '.join(FIELDS)}",
    )
    settings = Part(QuoteSettingsSchema, description="Settings of the whole sheet")
    accelerators = Named(Text(), most=MAX_LABELS, description="Canonical name of an accelerator by the sheet's label of it")
    rates = Named(Part(CurrencyRateSchema), most=len(CODES), names=CODES, description="Dollars for one unit, by ISO 4217 code")


def _check_name(text: str) -> None:
    """Raises ValidationError."""
    if not NAME.fullmatch(text):
        raise ValidationError(f"must have {NAMED}")


class PriceFileSchema(Schema):
    """A vendor's sheet, corrections of how it is read, and the confirmation."""

    content_base64 = Content(required=True, description="The unchanged file, CSV or XLSX, in base64")
    file_name = Text(description="Its name")
    name = Text(
        max_length=100,
        validate=_check_name,
        description=f"Name under which it is kept, a version each time: {NAMED}; by default made of the file's name",
    )
    mapping = Part(QuoteMappingSchema, description="Corrections of what the proposal says")
    confirm = Flag(load_default=False, description="Keep the offers as proposed, with sha256 of the file")
    sha256 = Text(min_length=64, max_length=64, description="Digest of the file that was proposed, in hexadecimal; needed to confirm")


PriceFileEntrySchema = derive(PriceFileEntry)
PriceFileAnswerSchema = derive(PriceFileAnswer)
PriceFileDetailSchema = derive(PriceFileDetail)
PriceFilePageSchema = page_schema(schema_of(PriceFileEntry))
