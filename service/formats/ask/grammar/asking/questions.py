"""What is asked about words and figures that have no place in a request."""

from __future__ import annotations

from collections.abc import Mapping

from service.domain.ask import Kind
from service.formats.ask.grammar.days.times import SIDE_TIME, YEARS_OVER
from service.formats.ask.grammar.money.single_quotes import EXPIRES, VALIDITY

QUESTIONS: Mapping[str, str] = {
    "k": "which accelerators of this vendor?",
    "€": "amounts are in US dollars: how many of them?",
    "L": "prices are of one accelerator: what is it of one?",
    "@": "prices are of one accelerator-hour: what is it of one?",
    "D": "what of this time: by it, from it, or for it?",
    "U": "what of this time: by it, from it, or for it?",
    "n": "what is this number of?",
    "m": "what is this number of?",
    "Ψ": "a network of its own: which preset, such as stable-diffusion-xl?",
    "d": "Outlay plans, prices and tracks runs, and does not do this",
    "z": "this limit has no place here: which number is meant?",
}
"""What to ask about pieces that no rule reads, by their kind."""
OTHER_UNITS: Mapping[str, str] = {
    "runs": "a question is of one run: ask of one, or plan all of them as a program (POST /v1/estimate/program)",
    "users": "a number of users is no part of a request: what they are served is stated in tokens (`2T tokens served`)",
    "people": "a number of people is no part of a request",
    "prompts": "data of RL are counted in answers: how many to each prompt, such as 20k prompts, 16 samples each?",
}
"""What to ask about a number of things that no request counts; of all others how many tokens they are."""
PASSED: Mapping[Kind, str] = {
    "status": "a status is of a program from its start: ask it of both days and compare",
    "price": "prices are those of now",
}
"""What is said of a time that is over (since May), where it is no time of a run."""
TOKENS_ASKED = "tokens of a stated model follow from a budget: say dollars, GPU-hours, days or FLOPs ($1M on 256 H100), or state the tokens"
NAMED: Mapping[str, str] = {
    EXPIRES: VALIDITY,
    SIDE_TIME: "the time of work beside the run, and none of it",
    YEARS_OVER: "years that are over, and no time of the run",
    "paper_due": "read as no time of the run",
    "cost_of_capital": "the cost of capital is one of buying, and changes no cost of a run or price",
}
"""What is said of slots that no request of a run has, by their name."""
