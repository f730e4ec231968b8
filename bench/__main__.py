"""`make bench`: cost of an estimate relative to the bare stack, layout search, start-up, memory. One line of JSON for each figure."""

from __future__ import annotations

import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.harness import (
    CLIENTS,
    REPEATS,
    ROOT,
    SERVICE,
    loaded,
    median_s,
    offline_client,
    post_cpu_s,
    read_request,
    report,
    timed,
    wait_until_answering,
)
from bench.servers import find_free_port
from service.api.resources.programs import EXAMPLE as PROGRAM
from service.api.resources.training.estimate import EXAMPLE

WORST_MODELS: tuple[dict[str, Any], ...] = (
    {"preset": "deepseek-v3"},
    {"layers": 5040, "hidden_size": 65536, "attention_heads": 512, "experts": 1024, "experts_per_token": 8},
    {"params": "1000B"},
)
# Everything in it has dozens of divisors, so that there are millions of ways to divide it.
MANY_DIVISORS = read_request("many-divisors")
BODY = json.dumps(EXAMPLE).encode()
# The search of Calculon (Isaev et al., SC'23), layouts a second on one core of the machine these benchmarks were written on.
CALCULON_LAYOUTS_PER_S = 740
GPT_3 = {"model": {"preset": "gpt-3-175b"}, "hardware": {"accelerator": "A100-80GB", "count": 1024}}
COMMON = {
    "7b_on_64": ("llama-2-7b", 64),
    "70b_on_512": ("llama-2-70b", 512),
    "8x7b_on_128": ("mixtral-8x7b", 128),
    "175b_on_1024": ("gpt-3-175b", 1024),
}
PROGRAM_PROMISED_MS, NEVER_ASKED_PROMISED_MS = 300.0, 600.0
PROGRAM_RUNS: tuple[dict[str, Any], ...] = tuple(
    {
        "name": f"run {at}",
        "estimate": {
            "model": {"params": 300_000_000 + 50_000_000 * at},
            "data": {"tokens": 5_000_000_000 + 1_700_000_000 * at},
            "hardware": {"accelerator": "H100", "count": 8 * 2 ** (at % 6)},
        },
    }
    for at in range(200)
)
OTHER_PROGRAM_RUNS: tuple[dict[str, Any], ...] = tuple(
    run | {"estimate": run["estimate"] | {"model": {"params": run["estimate"]["model"]["params"] + 1_000_000}}} for run in PROGRAM_RUNS
)
SUITES = tuple({"name": f"suite {at}", "samples": 500 * at, "generated": at % 2 == 0, "prompt_tokens": 500 * at} for at in range(1, 6))
RUNS_ALIKE: tuple[dict[str, Any], ...] = tuple({"name": run["name"], "estimate": PROGRAM_RUNS[0]["estimate"]} for run in PROGRAM_RUNS)
RUNS_OF_ONE_SHAPE: tuple[dict[str, Any], ...] = tuple(
    {"name": run["name"], "estimate": {**PROGRAM_RUNS[0]["estimate"], "data": run["estimate"]["data"]}} for run in PROGRAM_RUNS
)


def main() -> None:
    """All benchmarks, the baselines in the same run."""
    from bench.ask import reading
    from bench.command_line import command_line
    from bench.compare import compare
    from bench.pages import pages
    from bench.procurement import procurement
    from bench.results import results
    from bench.scaling import fits
    from bench.scenarios import scenarios
    from bench.scenarios_workers import workers
    from bench.tracking_service import tracking_service

    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "OUTLAY_DATA_DIR": str(Path(folder) / "data"), "OUTLAY_OFFLINE": "1", "OUTLAY_LOG_LEVEL": "warning"}
        flask = measure("bench.servers:bare_flask()", "/echo", environment)
        smorest = measure("bench.servers:smorest_echo()", "/echo", environment)
        estimate = measure(SERVICE, "/v1/estimate", environment)
        cold = measure(SERVICE, "/v1/estimate", environment, vary=True)
        searched = {name: measure_search(preset, count, environment) for name, (preset, count) in COMMON.items()}
        compare(environment)
    for name, baseline in (("bare_flask_echo", flask), ("flask_smorest_echo", smorest)):
        report(f"{name}.requests_per_s", baseline["requests_per_s"], "1/s")
        report(f"{name}.cpu_ms", baseline["cpu_ms"], "ms")
    units = {"requests_per_s": "1/s", "cpu_ms": "ms", "p50_ms": "ms", "p99_ms": "ms"}
    for name, result in (("estimate", estimate), ("estimate_never_asked_before", cold)):
        for figure, unit in units.items():
            report(f"{name}.{figure}", result[figure], unit, "flask_smorest_echo", smorest[figure])
    for name, result in searched.items():
        report(f"estimate_{name}.p50_ms", result["p50_ms"], "ms, one client, never asked before")
        report(f"estimate_{name}.cpu_ms", result["cpu_ms"], "ms")
    layout_search()
    reading()
    fits()
    scenarios()
    workers()
    report("web_idle_memory", estimate["idle_mb"], "MB for master and 2 workers", "flask_smorest_echo", smorest["idle_mb"])
    worst_case()
    offer_choice()
    program_of_200_runs()
    portfolio_of_200_runs()
    procurement()
    tracking_service()
    results()
    pages()
    start_up()
    command_line()


def measure(app: str, path: str, environment: dict[str, str], *, vary: bool = False) -> dict[str, float]:
    """Requests a second, CPU a request, latencies and idle memory of an application under gunicorn with two workers."""
    return loaded(app, path, environment, [varied(EXAMPLE) if vary else itertools.repeat(BODY) for _ in range(CLIENTS)])


def measure_search(preset: str, count: int, environment: dict[str, str]) -> dict[str, float]:
    """The same of estimates of one size that the service has not seen before, from one client."""
    request = EXAMPLE | {"model": {"preset": preset}, "hardware": {"accelerator": "H100", "count": count}}
    return loaded(SERVICE, "/v1/estimate", environment, [varied(request)])


def varied(request: dict[str, Any]) -> Iterator[bytes]:
    """The request again and again, each time a new one to every cache: with another input pipeline, never slow enough to matter."""
    while True:
        training = request["training"] | {"input_tokens_per_s_per_node": 1e11 + time.monotonic_ns() % 10**11}
        yield json.dumps(request | {"training": training}).encode()


def layout_search() -> None:
    """The layout search without the service around it: 175 billion parameters on 1,024 accelerators, one core, nothing cached."""
    from service.domain.training.run import RECOMPUTES, TODAYS_SOFTWARE, Axes
    from service.engine.training.layouts import candidate_layouts
    from service.engine.training.memory.memory_use import memory_use
    from service.engine.training.search.layout_search import search_layout
    from service.engine.training.step.step_time import step_time
    from service.presets.hardware.accelerators import find_accelerator
    from service.presets.training.utilisation import find_utilisation
    from service.usecases.resolution.assumption_log import AssumptionLog
    from service.usecases.resolution.cluster import resolve_cluster
    from service.usecases.resolution.model import resolve_model
    from service.usecases.resolution.training import resolve_training

    cluster = resolve_cluster(find_accelerator(GPT_3["hardware"]["accelerator"]), GPT_3["hardware"], AssumptionLog())
    model, seq_len = resolve_model(GPT_3["model"], AssumptionLog())
    training = resolve_training({}, model, seq_len, cluster, TODAYS_SOFTWARE, AssumptionLog())
    utilisation = find_utilisation(cluster.accelerator, training.precision)
    layouts = candidate_layouts(model, training, cluster)
    each_s = median_s(lambda: (memory_use(model, training, layouts).total, step_time(model, training, cluster, utilisation, layouts).total))
    report("search.layouts_per_s", len(layouts) / each_s, "1/s", "calculon", CALCULON_LAYOUTS_PER_S)
    # Another vocabulary each time: nothing of the search is remembered.
    unseen = (replace(model, vocab_size=model.vocab_size + more) for more in itertools.count(1))
    report("search.175b_on_1024.ms", 1e3 * median_s(lambda: search_layout(next(unseen), training, cluster, utilisation)), "ms")
    report("search.175b_on_1024.layouts", len(layouts), "layouts")
    row = search_layout(model, training, cluster, utilisation).layouts.row(0)
    one = replace(training, axes=Axes(**row | {"recompute": RECOMPUTES[row["recompute"]]}))
    report("search.single_layout.ms", 1e3 * median_s(lambda: search_layout(next(unseen), one, cluster, utilisation)), "ms")


def worst_case() -> None:
    """CPU of the costliest single estimates allowed: machines with many divisors, long sequences, many experts."""
    edge = {"training": EXAMPLE["training"] | {"seq_len": 10**6, "global_batch_tokens": 10**12}}
    machines = [{"accelerator": "H100", "count": count, "accelerators_per_node": 64} for count in (2**23, 5765760, 9979200)]
    costly = [EXAMPLE | edge | {"model": model, "hardware": machine} for machine in machines for model in WORST_MODELS]
    with offline_client() as client:
        client.post("/v1/estimate", json=EXAMPLE)
        spent_s = [
            timed(lambda body=body: client.post("/v1/estimate", json=body), time.process_time)[0] for body in (*costly, MANY_DIVISORS)
        ]
        batch_s, _ = post_cpu_s(client, "/v1/estimate/batch", {"requests": [EXAMPLE] * 1000})
    report("estimate_worst_case.cpu_ms", max(spent_s) * 1e3, "ms")
    report("estimate_batch_of_1000.cpu_ms", batch_s * 1e3, "ms")


def offer_choice() -> None:
    """CPU time of an estimate whose price is chosen among all offers, from cache, over one whose price is stated."""
    request = {"model": {"preset": "llama-3-70b"}, "data": {"tokens": "15T"}, "hardware": {"accelerator": "h100", "count": 2048}}
    with offline_client() as client:

        def cpu_ms(asked: dict[str, Any]) -> float:
            return 1000 * statistics.median(post_cpu_s(client, "/v1/estimate", asked)[0] for _ in range(100))

        stated = cpu_ms({**request, "price": {"usd_per_accelerator_hour": 2.0}})
        report("estimate_without_price.cpu_ms", cpu_ms(request), "ms", "estimate_with_price", stated)


def program_of_200_runs() -> None:
    """CPU of programs of 200 runs: all alike, of one shape and with tokens of their own, and of shapes that all differ, these with layouts
    that were searched before and when they were never asked before, without and with evaluation suites.
    """
    with offline_client() as client:

        def repeated_ms(runs: Sequence[dict[str, Any]]) -> list[float]:
            return [1e3 * post_cpu_s(client, "/v1/estimate/program", program_of(runs))[0] for _ in range(REPEATS)]

        for program in (program_of(PROGRAM_RUNS[:1]), evaluated_program(PROGRAM_RUNS[:1])):
            client.post("/v1/estimate/program", json=program)
        gc.collect()
        gc.freeze()  # as every worker of the service is
        alike, one_shape = repeated_ms(RUNS_ALIKE), repeated_ms(RUNS_OF_ONE_SHAPE)
        first, *again = repeated_ms(PROGRAM_RUNS)
        evaluated = 1e3 * post_cpu_s(client, "/v1/estimate/program", evaluated_program(OTHER_PROGRAM_RUNS))[0]
    figures = {"_alike": statistics.median(alike), "_of_one_shape": statistics.median(one_shape)}
    for name, value in (figures | {"": statistics.median(again)}).items():
        report(f"program_200_runs{name}_ms", value, "ms", "promised", PROGRAM_PROMISED_MS)
    for name, value in {"": first, "_with_5_suites": evaluated}.items():
        report(f"program_200_runs_never_asked_before{name}_ms", value, "ms", "promised", NEVER_ASKED_PROMISED_MS)


def program_of(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The program of the documentation, without its deadline, with other runs in production."""
    *before, production = PROGRAM["tiers"]
    return {name: given for name, given in PROGRAM.items() if name != "deadline"} | {"tiers": [*before, production | {"runs": list(runs)}]}


def portfolio_of_200_runs() -> None:
    """CPU of ten programs of 20 runs on one pool, with all options, against planning them one by one; layouts were searched before."""
    programs = [
        program_of(PROGRAM_RUNS[20 * place : 20 * place + 20]) | {"name": f"program {place}", "priority": place % 3} for place in range(10)
    ]
    with offline_client() as client:
        alone = {"start": PROGRAM["start"]}
        singly = [{name: part for name, part in program.items() if name != "priority"} | alone for program in programs]
        for program in singly:
            client.post("/v1/estimate/program", json=program)
        apart_ms = 1e3 * statistics.median(
            sum(post_cpu_s(client, "/v1/estimate/program", program)[0] for program in singly) for _ in range(REPEATS)
        )
        asked = {**alone, "programs": programs}
        together_ms = 1e3 * statistics.median(post_cpu_s(client, "/v1/portfolio", asked)[0] for _ in range(REPEATS))
    report("portfolio_10_programs_of_20_runs.cpu_ms", together_ms, "ms", "the programs one by one", apart_ms)


def start_up() -> None:
    """From `outlay serve` to a ready service, first with an empty data directory and then with what it left."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first_start", "second_start"):
            port = find_free_port()
            environment = {**os.environ, "OUTLAY_DATA_DIR": folder, "OUTLAY_PORT": str(port), "OUTLAY_LOG_LEVEL": "warning"}
            begun = time.perf_counter()
            process = subprocess.Popen([sys.executable, "-m", "service.cli", "serve"], env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)
            try:
                wait_until_answering(port, process, "/readyz")
                report(name, time.perf_counter() - begun, "s")
            finally:
                process.terminate()
                process.wait(60)


def evaluated_program(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """That program with five evaluation suites in place of the share of its hours that evaluation takes."""
    program = program_of(runs)
    overhead = {name: share for name, share in program["overhead"].items() if name != "evaluation"}
    return program | {"overhead": overhead, "evaluation": {"suites": SUITES}}


if __name__ == "__main__":
    main()
