"""Words of vendors' sheets: headers by field, currencies, units, terms; in English, with the German and French ones of price lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

Field = Literal[
    "provider",
    "region",
    "country",
    "instance_type",
    "accelerator",
    "accelerator_count",
    "memory_gb",
    "price",
    "currency",
    "price_unit",
    "pricing",
    "term",
    "upfront",
    "valid_until",
    "observed_at",
    "minimum",
    "committed",
    "capacity",
]
FIELDS: tuple[Field, ...] = get_args(Field)
_HEADER_WORDS: Mapping[Field, str] = {
    "valid_until": r"\b(valid (until|till|thru|through|to)|expir\w*|(offer|quote) ends?|good until|gültig bis|valable jusqu\w*)\b",
    "observed_at": r"\b((quote|offer|effective|issue|price|start)[ _]?date|date|quoted on|valid from|as of|datum|angebotsdatum)\b",
    "upfront": r"\b(up ?front|pre ?pa(y|id|yment)\w*|down ?payment|deposit|anzahlung|vorauszahlung|acompte)\b",
    "committed": r"\b((minimum|committed|annual|total) (spend|commit\w*)|spend commit\w*"
    r"|commit(ted)? (usd|amount|value)|mindestumsatz)\b",
    "minimum": r"\b(min(imum)?\.? (qty|quantity|order|gpus?|units?|nodes?|size|accelerators?|count)|moq|mindest\w*|tier|volume"
    r"|(qty|quantity|volume) (from|tier|band|break)|from (gpus?|qty)|menge ab|cluster size)\b"
    r"|^(qty|quantity|anzahl|menge|units|stück\w*)( ?\(.*\))?$",
    "accelerator_count": r"(#|\b(no|num|number|count)\b\.?( of)?|\bn) ?(gpus?|accelerators?)\b"
    r"|\b(gpus?|accelerators?|cards?)[ _]?(count|qty|quantity|number|/ ?(node|server|instance)|per (node|server|instance))\b"
    r"|^(gpus|accelerators|cards|anzahl gpus?|gpu[- ]?anzahl)$",
    "memory_gb": r"\b(vram|gpu (memory|ram|mem)|memory (per gpu|gb)|hbm|speicher)\b",
    "capacity": r"\b(capacity( type| guarantee\w*)?|guaranteed|availability guarantee)\b",
    "currency": r"^(currency|ccy|curr\.?|währung|devise)$",
    "price_unit": r"^(unit|uom|unit of measure|billing unit|price unit|per|einheit|unité|charge unit)$",
    "term": r"\b(terms?|term length|commitment|contract(?! (value|total|price|amount))|duration"
    r"|laufzeit|vertragslaufzeit|durée|months|years)\b",
    "pricing": r"\b(pricing( model)?|price type|plan|billing( model)?|purchase option|preismodell|rate type)\b",
    "price": r"\b(price|rate|cost|fee|charge|tariff|preis|tarif|prix|usd|eur|gbp|hourly|monthly|per hour|on ?demand|spot|reserved"
    r"|net|list|amount|betrag|contract (value|total))\b|[$€£]|/ ?h(ou)?r\b",
    "accelerator": r"\b(gpus?|accelerators?|gpu (type|model|name)|chip|card|beschleuniger|grafikkarte|graphics card)\b",
    "instance_type": r"\b(sku|instance( type| name)?|part( ?(no|number))?|product|item|system|machine( type)?|node( type)?|model|config\w*"
    r"|description|server|flavou?r|shape|artikel|produkt|bezeichnung|beschreibung|désignation|article|offering|service)\b",
    "provider": r"\b(vendor|provider|supplier|seller|cloud|anbieter|lieferant|fournisseur|company|csp)\b",
    "country": r"\b(country|land|pays)\b",
    "region": r"\b(region|location|data ?cent(er|re)|dc|site|zone|az|standort|rechenzentrum|région|geo(graphy)?)\b",
}
HEADERS: Mapping[Field, re.Pattern[str]] = {name: re.compile(pattern) for name, pattern in _HEADER_WORDS.items()}
"""Pattern of a header by field; the first that matches counts."""
LIST_PRICE = re.compile(r"\b(list|msrp|retail|regular|standard|undiscounted|before discount|listenpreis)\b", re.IGNORECASE)
"""Headers of prices before a discount."""
UPFRONT_OPTION = re.compile(r"\b(no|all|full|partial|zero|without)[ -]?up ?-?front\b", re.IGNORECASE)
IGNORED = re.compile(
    r"\b(notes?|comments?|remarks?|v?cpus?|ram|system memory|storage|disk|ssd|nvme|network\w*|bandwidth|interconnect"
    r"|contact|email|line|pos(ition)?"
    r"|bemerkung\w*|availability|status|lead time|discount|savings?|subtotal|total|sum|summe|tax|vat)\b"
)
"""Headers of columns that no offer needs."""
CURRENCIES: Mapping[str, str] = {
    "us$": "USD",
    "c$": "CAD",
    "ca$": "CAD",
    "a$": "AUD",
    "au$": "AUD",
    "s$": "SGD",
    "hk$": "HKD",
    "$": "USD",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "₹": "INR",
    "₩": "KRW",
    "dollars": "USD",
    "dollar": "USD",
    "euros": "EUR",
    "euro": "EUR",
    "pounds": "GBP",
}
CODES = (
    "USD",
    "EUR",
    "GBP",
    "CHF",
    "CAD",
    "AUD",
    "JPY",
    "CNY",
    "INR",
    "KRW",
    "SEK",
    "NOK",
    "DKK",
    "PLN",
    "CZK",
    "SGD",
    "HKD",
    "BRL",
    "AED",
    "SAR",
)
"""ISO 4217 codes that are recognised."""
CURRENCY = re.compile(
    rf"(?<![A-Za-z])(?:{'|'.join(CODES)})(?![A-Za-z])|(?:us|ca?|au?|s|hk)?\$|[€£¥₹₩]|\b(?:dollars?|euros?|pounds)\b", re.IGNORECASE
)
PERIODS: Mapping[str, re.Pattern[str]] = {
    "hour": re.compile(r"\b(hours?|hrs?|hourly|h|stunde|std|heure|gpuh|gpu-?h)\b|/ ?h\b", re.IGNORECASE),
    "month": re.compile(r"\b(months?|monthly|mo|mth|mrc|monat(lich)?|mois|mensuel)\b", re.IGNORECASE),
    "year": re.compile(r"\b(years?|yearly|annual(ly)?|per annum|p\.?a\.?|yr|jahr|jährlich|an(nuel)?)\b", re.IGNORECASE),
    "term": re.compile(
        r"\b(whole term|full term|entire term|contract (value|total)|total contract|tcv|per term|term total)\b", re.IGNORECASE
    ),
}
BASES: Mapping[str, re.Pattern[str]] = {
    "accelerator": re.compile(
        r"(\bper |/ ?|\b)(gpus?|gpuh|accelerators?|cards?|chips?)(?![\w ]*count)( ?[/-] ?h(ou)?rs?| ?h(ou)?rs?| per)?\b", re.IGNORECASE
    ),
    "instance": re.compile(r"\b(nodes?|servers?|instances?|machines?|systems?|vms?|hosts?|knoten|serveur|box|chassis)\b", re.IGNORECASE),
}
TERM_LENGTH = re.compile(
    r"(?<![\w.])(\d{1,3}(?:[.,]\d{1,2})?|one|two|three|four|five|six|half)[ -]?"
    r"(hours?|hrs?|days?|weeks?|wks?|months?|mos?|mths?|m|years?|yrs?|y|jahre?|monate?|tage?|wochen?|ans?|mois|jours?)(?![A-Za-z])",
    re.IGNORECASE,
)
MONTH_BY_MONTH = re.compile(r"\bmonth[- ](?:to|by)[- ]month\b", re.IGNORECASE)
NUMBER_WORDS: Mapping[str, float] = {"half": 0.5, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
PERIOD_HOURS: Mapping[str, float] = {"h": 1.0, "d": 24.0, "w": 168.0, "m": 730.0, "y": 8760.0}
"""Hours of a period by its first letter [h]: a year has 8,760, a month a twelfth of it."""
LETTERS: Mapping[str, str] = {"t": "d", "j": "d", "a": "y"}
"""First letters of German and French periods; `jahr` and `mois` are told apart before."""
ON_DEMAND = re.compile(
    r"\b(on[- ]?demand|pay[- ]as[- ]you[- ]go|payg|hourly|no (commitment|term|contract)|flex(ible)?|none)\b", re.IGNORECASE
)
SPOT = re.compile(r"\b(spot|pre-?emptible|interruptible|low priority)\b", re.IGNORECASE)
RESERVED = re.compile(r"\b(reserv\w*|commit\w*|contract\w*|term|savings? plan|dedicated)\b", re.IGNORECASE)
ALL_UPFRONT = re.compile(r"\b(all|full(y)?|100 ?%|paid)[ -]?(up ?front|pre ?pa(id|y|yment))\b|^(all|full|yes|prepaid)$", re.IGNORECASE)
NO_UPFRONT = re.compile(
    r"\b(no|zero|without)[ -]?(up ?front|pre ?pay\w*|deposit)\b|^(no|none|nil|n/?a|-|–|0|keine?|ohne|aucune?)$", re.IGNORECASE
)
UPFRONT_SHARE = re.compile(
    r"(?<![\d.,])(?P<before>\d{1,3}(?:[.,]\d{1,2})?) ?%(?: \w+){0,2}? ?-?(?:up ?-?front|pre ?pa(?:id|y\w*)|in advance|deposit|down ?payment"
    r"|anzahlung|vorauszahlung|im voraus|acompte)"
    r"|\b(?:deposit|pre ?payment|down ?payment|up ?-?front(?: payment)?|anzahlung|vorauszahlung|acompte)(?: of|:| =| von| de)? ?"
    r"(?P<after>\d{1,3}(?:[.,]\d{1,2})?) ?%",
    re.IGNORECASE,
)
"""What a remark says is paid at the start."""
_TITLES = r"(?:quot\w*|offer|proposal|price ?list|pricing|rate card|angebot|preisliste|devis)"
TITLE = re.compile(
    rf"^(?P<first>[^-–—:|0-9]{{2,40}}?) *(?:[-–—:|]|, )+ *.*\b{_TITLES}\b|\b{_TITLES} (?:from|by|von|de) (?P<last>[^-–—:|0-9]{{2,40}})$",
    re.IGNORECASE,
)
"""A title with the vendor's name: "Nimbus Compute - quotation 2026-117"."""
NO_NAME = re.compile(
    rf"\b(?:{_TITLES}|gpus?|accelerators?|prices?|rates?|confidential|draft|valid|all|customer|your|our|the|for|to|date|currency)\b",
    re.IGNORECASE,
)
"""Words that are in no vendor's name."""
YES = re.compile(r"^(yes|y|true|guaranteed|reserved|dedicated|committed capacity|capacity|ja|oui|x|✓)$", re.IGNORECASE)
NO = re.compile(r"^(no|n|false|discount( only)?|best effort|none|nein|non|-)$", re.IGNORECASE)
NOTHING = re.compile(
    r"^(|-+|–|—|n/?a|tbd|tba|tbc|poa|por|on request|contact( us| sales)?|ask|auf anfrage|sur demande|sold out|none|null|#n/a|call( us)?)$",
    re.IGNORECASE,
)
"""Cells that hold no value; none of them is a price of 0."""
MONTHS: Mapping[str, int] = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar janvier",
            "feb february februar février",
            "mar march mär märz mrz mars",
            "apr april avril",
            "may mai",
            "jun june juni juin",
            "jul july juli juillet",
            "aug august août",
            "sep sept september septembre",
            "oct october okt oktober octobre",
            "nov november novembre",
            "dec december dez dezember décembre",
        ),
        start=1,
    )
    for name in names.split()
}
