"""Price sheets in the shapes that vendors and buyers use, each with what has to become of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from tests.unit.formats.imports.quotes.reference import A100, B200, EURO, H100, H200, L40S, MI300X, Sold, workbook


@dataclass(frozen=True)
class VendorSheet:
    """A file, the caller's corrections, the offers that it makes, and texts that refuse other rows, by row."""

    name: str
    content: bytes
    sold: tuple[Sold, ...]
    corrections: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    file_name: str = "quote.csv"


def text(*lines: str, encoding: str = "utf-8", end: str = "\r\n") -> bytes:
    """A CSV file of these lines."""
    return end.join((*lines, "")).encode(encoding)


def _hide(book: Any) -> None:
    book["Quote"].row_dimensions[3].hidden = True
    book["Old"].sheet_state = "hidden"


def _merge(book: Any) -> None:
    sheet = book.active
    sheet.merge_cells("A1:F1")
    sheet.merge_cells("C2:D2")
    sheet.merge_cells("E2:F2")
    sheet.merge_cells("A4:A5")


DAY = date(2026, 12, 31)
SHEETS = (
    VendorSheet(
        "dollars, US dates, a term in words",
        text(
            "Vendor,SKU,Price,Valid until,Term",
            "Lambda,8x H100 SXM5 80GB,$2.10 / GPU / hr,11/30/2026,3yr reserved",
            "Lambda,8x H100 SXM5 80GB,$2.45 / GPU / hr,12/05/2026,1yr reserved",
        ),
        (
            Sold(H100, 8, "reserved_3y", 2.10, until=date(2026, 11, 30), provider="lambda"),
            Sold(H100, 8, "reserved_1y", 2.45, until=date(2026, 12, 5)),
        ),
    ),
    VendorSheet(
        "German list: comma decimals, semicolons, notes above, months, a down payment",
        text(
            "Angebot Nordwolke GmbH;;;;",
            "Alle Preise in EUR pro GPU-Stunde, gültig bis 31.12.2026;;;;",
            ";;;;",
            "GPU-Typ;Anzahl GPUs;Preis;Laufzeit;Anzahlung",
            "NVIDIA H100 80GB SXM;8;2,10;12 Monate;25%",
            "NVIDIA B200 180GB;8;4,10;6 Monate;keine",
        ),
        (
            Sold(H100, 8, "reserved_1y", 2.31, upfront=0.25, until=DAY, provider="Nordwolke"),
            Sold(B200, 8, "reserved", 4.51, hours=4380.0, upfront=0.0, until=DAY),
        ),
        {"rates": EURO, "settings": {"provider": "Nordwolke"}},
    ),
    VendorSheet(
        "wide: a column for each term, prices of a node told by what is usual",
        text(
            "Provider,Location,GPU,On-Demand,1 yr reserved,3-Year Reserved",
            'CoreWeave,US-East,8x H100 SXM,$29.00,"$22.00","$18.00"',
            "CoreWeave,US-East,HGX H200 node,$32.00,$26.00,N/A",
        ),
        (
            Sold(H100, 8, "on_demand", 29 / 8),
            Sold(H100, 8, "reserved_1y", 22 / 8),
            Sold(H100, 8, "reserved_3y", 18 / 8),
            Sold(H200, 8, "on_demand", 4.0),
            Sold(H200, 8, "reserved_1y", 26 / 8),
        ),
    ),
    VendorSheet(
        "volume tiers as columns",
        text(
            "Vendor,Accelerator,Term,8-63 GPUs,64-255 GPUs,256+ GPUs,Currency,Unit",
            "Crusoe,H100 SXM,12 months,2.60,2.40,2.20,USD,GPU-hour",
        ),
        (
            Sold(H100, 8, "reserved_1y", 2.60, least=8),
            Sold(H100, 8, "reserved_1y", 2.40, least=64),
            Sold(H100, 8, "reserved_1y", 2.20, least=256),
        ),
    ),
    VendorSheet(
        "monthly price of a node, minimum in nodes, a term of two years",
        text(
            "Supplier: Nebius",
            "",
            "Config,Min nodes,Monthly price per node (USD),Commitment (months),Expires",
            'HGX H100 8-GPU,32,"14,016.00",24,2027-01-31',
            'HGX H200 8-GPU,64,"18,688.00",36,2027-01-31',
        ),
        (
            Sold(H100, 8, "reserved", 2.4, hours=17520.0, least=256, until=date(2027, 1, 31), provider="nebius"),
            Sold(H200, 8, "reserved_3y", 3.2, least=512),
        ),
    ),
    VendorSheet(
        "price of the whole term of an instance, paid in advance",
        text(
            "Vendor|Part number|GPUs per server|Contract length|Contract value USD per server|Prepayment",
            "Together|H100-SXM-NODE|8|1 year|175200|100%",
        ),
        (Sold(H100, 8, "reserved_1y", 2.5, upfront=1.0),),
    ),
    VendorSheet(
        "European dates with slashes decided by the column",
        text(
            "Provider;Item;Price per GPU per hour;Term;Offer ends",
            "OCI;H100 SXM;€2,00;36 months;03/12/2026",
            "OCI;H200 SXM 141GB;€2,50;36 months;28/12/2026",
        ),
        (
            Sold(H100, 8, "reserved_3y", 2.2, until=date(2026, 12, 3), provider="oci"),
            Sold(H200, 8, "reserved_3y", 2.75, until=date(2026, 12, 28)),
        ),
        {"rates": EURO},
    ),
    VendorSheet(
        "dates that can be read in two ways are asked for",
        text(
            "Provider,Item,Price per GPU per hour,Term,Offer ends",
            "OCI,H100 SXM,$2.00,36 months,03/12/2026",
            "OCI,H200 SXM 141GB,$2.50,36 months,2027-01-31",
        ),
        (Sold(H200, 8, "reserved_3y", 2.5, until=date(2027, 1, 31)),),
        refused={2: "'03/12/2026' can be read in two ways: state mapping.settings.date_order"},
    ),
    VendorSheet(
        "thousands or decimals are asked for",
        text("Provider,Item,Monthly price per GPU (USD),Term", "Lambda,H100 SXM,1.533,12 months", "Lambda,H200 SXM 141GB,1.898,12 months"),
        (),
        refused={2: "'1.533' can be read in two ways: state mapping.settings.decimal_mark", 3: "'1.898' can be read in two ways"},
    ),
    VendorSheet(
        "a workbook with merged headers, a title, and a vendor merged over two rows",
        workbook(
            {
                "Pricing": [
                    ["Price list Q4 2026 - all prices USD per GPU-hour", None, None, None, None, None],
                    [None, None, "Reserved", None, "No commitment", None],
                    ["Vendor", "GPU", "1 year", "3 years", "On-demand", "Spot"],
                    ["Lambda", "H100 SXM 80GB", 2.2, 1.9, 2.99, 1.4],
                    [None, "B200 180GB", 3.9, 3.4, 4.99, None],
                ]
            },
            _merge,
        ),
        (
            Sold(H100, 8, "reserved_1y", 2.2, provider="lambda"),
            Sold(H100, 8, "reserved_3y", 1.9),
            Sold(H100, 8, "on_demand", 2.99),
            Sold(H100, 8, "spot", 1.4),
            Sold(B200, 8, "reserved_1y", 3.9, provider="lambda"),
            Sold(B200, 8, "reserved_3y", 3.4),
            Sold(B200, 8, "on_demand", 4.99),
        ),
        file_name="list.xlsx",
    ),
    VendorSheet(
        "hidden rows and sheets are not read",
        workbook(
            {
                "Read me": [["This workbook holds our quote."], ["Ask us for more."]],
                "Quote": [
                    ["Vendor", "GPU", "USD per GPU hour", "Term", "Valid until"],
                    ["Crusoe", "MI300X", 2.4, "1 year", datetime(2026, 12, 31)],  # noqa: DTZ001 - as a workbook has it
                    ["Crusoe", "MI300X", 9.9, "2 years", datetime(2026, 12, 31)],  # noqa: DTZ001
                ],
                "Old": [["Vendor", "GPU", "USD per GPU hour", "Term"], ["Crusoe", "H100 SXM", 9.9, "1 year"]],
            },
            _hide,
        ),
        (Sold(MI300X, 8, "reserved_1y", 2.4, until=DAY),),
        file_name="quote.xlsx",
    ),
    VendorSheet(
        "of several sheets the one that the caller names",
        workbook(
            {
                "Training": [
                    ["Vendor", "GPU", "USD/GPU/hr", "Term"],
                    ["Lambda", "H100 SXM", 2.5, "1 year"],
                    ["Lambda", "B200", 4, "1 year"],
                ],
                "Inference": [["Vendor", "GPU", "USD/GPU/hr", "Term"], ["Lambda", "L40S", 0.9, "1 year"]],
            }
        ),
        (Sold(L40S, 8, "reserved_1y", 0.9),),
        {"sheet": "inference"},
        file_name="quote.xlsx",
    ),
    VendorSheet(
        "an ambiguous accelerator is asked back, and taken as the caller says",
        text("Vendor,GPU,$/GPU/hr,Term", "Lambda,A100,$1.30,1 year", "Lambda,H100,$2.30,1 year"),
        (Sold(A100, 8, "reserved_1y", 1.30),),
        {"accelerators": {"A100": A100}},
        {3: "'H100' may be NVIDIA-H100-80GB-SXM or"},
    ),
    VendorSheet(
        "a currency without a rate, a price on request, a price of zero, and one that has ended",
        text(
            "Vendor,GPU,Price,Unit,Term,Valid until",
            "Lambda,H100 SXM,GBP 1.90,GPU-hour,1 year,2026-12-31",
            "Lambda,H200 SXM 141GB,on request,GPU-hour,1 year,2026-12-31",
            "Lambda,B200,$0.00,GPU-hour,1 year,2026-12-31",
            "Lambda,L40S,$0.90,GPU-hour,1 year,2026-10-31",
            "Lambda,MI300X,$2.40,GPU-hour,1 year,2026-12-31",
        ),
        (Sold(MI300X, 8, "reserved_1y", 2.4),),
        refused={
            2: "the price is in GBP: state the dollars for one GBP and their day: state mapping.rates.GBP",
            4: "a price of 0.00 is unknown, not free",
            5: "the quote ended on 2026-10-31",
        },
    ),
    VendorSheet(
        "headings within the table carry the term",
        text(
            "Lambda price list,,",
            "GPU,Price per GPU-hour (USD),Region",
            "12 month commitment,,",
            "H100 SXM,2.40,us-east",
            "24 month commitment,,",
            "H100 SXM,2.20,us-east",
        ),
        (Sold(H100, 8, "reserved_1y", 2.40, provider="lambda"), Sold(H100, 8, "reserved", 2.20, hours=17520.0)),
    ),
    VendorSheet(
        "tabs, Windows text, committed spend in thousands",
        text(
            "Vendor\tDescription\tHourly rate per GPU\tAgreement term\tCommitted spend",
            "Société Nuage\tNVIDIA H100 80GB SXM\t$2.00\t3 years\t$500k",
            encoding="cp1252",
        ),
        (Sold(H100, 8, "reserved_3y", 2.0, provider="Société Nuage"),),
    ),
    VendorSheet(
        "instance types of a cloud, and a header row that the caller names",
        text(
            "Provider,Price,Price,Price",
            "AWS,Instance type,Rate USD per instance per hour,Purchase option",
            "aws,p5.48xlarge,38.40,1 year no upfront",
            "aws,p5.48xlarge,24.00,3 years all upfront",
        ),
        (Sold(H100, 8, "reserved_1y", 4.8, upfront=0.0), Sold(H100, 8, "reserved_3y", 3.0, upfront=1.0)),
        {"header_row": 2, "columns": {"A": "provider"}},
    ),
    VendorSheet(
        "no currency, vendor or kind of pricing: every fault at once",
        text("GPU,Price", "H100 SXM,2.50"),
        (),
        refused={2: "no column and no note names the vendor"},
    ),
    VendorSheet(
        "the same, with everything stated by the caller",
        text("GPU,Price", "H100 SXM,2.50"),
        (Sold(H100, 8, "reserved", 2.5, hours=2190.0, upfront=0.5, until=DAY, least=64, provider="Acme"),),
        {
            "settings": {
                "provider": "Acme",
                "currency": "USD",
                "pricing": "reserved",
                "term_hours": 2190.0,
                "upfront_share": 0.5,
                "valid_until": DAY,
                "minimum_accelerators": 64,
                "price_basis": "accelerator",
                "price_period": "hour",
            }
        },
    ),
    VendorSheet(
        "a cloud's calculator: memory of a whole machine, plans with and without prepayment",
        text(
            "Provider,Instance Size,vCPU,GPU,Instance Memory (GiB),GPU Memory,On-Demand Hourly Cost,"
            "1-yr Savings Plan effective hourly (no upfront),3-yr Savings Plan effective hourly (all upfront)",
            "AWS,p5.48xlarge,192,8 x H100,2048,640 GB HBM3,$28.00,$20.00,$16.00",
        ),
        (
            Sold(H100, 8, "on_demand", 3.5, provider="aws"),
            Sold(H100, 8, "reserved_1y", 2.5, upfront=0.0),
            Sold(H100, 8, "reserved_3y", 2.0, upfront=1.0),
        ),
    ),
    VendorSheet(
        "the kind of pricing in the name of the product, memory of one device",
        text(
            "Instance,VRAM/GPU,vCPUs,RAM,Storage,Price per GPU-hour",
            "On-demand 8x NVIDIA H100 SXM,80 GB,208,1800 GiB,22 TiB SSD,$2.99",
            "Reserved 1 year 8x NVIDIA B200 SXM,180 GB,208,2900 GiB,22 TiB SSD,$3.79",
        ),
        (Sold(H100, 8, "on_demand", 2.99, provider="lambda"), Sold(B200, 8, "reserved_1y", 3.79)),
        file_name="lambda prices.csv",
    ),
    VendorSheet(
        "a quantity quoted, with terms of months as columns",
        text("Vendor,GPU Type,Qty (GPUs),$/GPU/hr (1 mo),$/GPU/hr (3 mo),$/GPU/hr (12 mo)", "Acme,H100 SXM5,256,2.60,2.40,2.10"),
        (
            Sold(H100, 8, "reserved", 2.6, hours=730.0, least=256),
            Sold(H100, 8, "reserved", 2.4, hours=2190.0, least=256),
            Sold(H100, 8, "reserved_1y", 2.1, least=256),
        ),
    ),
    VendorSheet(
        "month to month, totals below the table, headers in two lines",
        text(
            'Vendor,"GPU\nmodel","Price\n(USD/GPU/hr)",Commitment,Upfront,Total',
            'Acme,H200 SXM,$2.80,Month-to-month,,"$2,000.00"',
            'Acme,H200 SXM,$2.50,12-month,20%,"$2,000.00"',
            ',,,,Subtotal,"$4,000.00"',
            'Total,,,,,"$4,000.00"',
        ),
        (Sold(H200, 8, "reserved", 2.8, hours=730.0), Sold(H200, 8, "reserved_1y", 2.5, upfront=0.2)),
    ),
    VendorSheet(
        "a net price beside the list price",
        text("Vendor,Instance,List price/GPU/hr,Discount,Net price/GPU/hr,Term", "Acme,8x H100 SXM,$2.99,20%,$2.39,1yr"),
        (Sold(H100, 8, "reserved_1y", 2.39),),
    ),
    VendorSheet(
        "thousands with a suffix, a year's price, a committed spend",
        text("Vendor,GPU,Annual price per GPU,Term,Annual commit", "Acme,H100 SXM,$17.52k,3 years,$1.2M"),
        (Sold(H100, 8, "reserved_3y", 2.0),),
    ),
    VendorSheet(
        "formulas: their saved values; without one there is no price",
        workbook(
            {
                "Quote": [
                    ["Vendor", "GPU", "List USD per GPU hour", "Net USD/GPU/hr after 10%", "Term"],
                    ["Lambda", "H100 SXM", 2.5, "=C2*0.9", "1 year"],
                ]
            }
        ),
        (Sold(H100, 8, "reserved_1y", 2.5),),
        file_name="quote.xlsx",
    ),
)
