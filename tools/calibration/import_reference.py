"""Make the project's own compact tables from a folder of reference data: `python -m tools.calibration.import_reference FOLDER`.

Rows keep only what a prediction needs; `excluded` says why a row is left out of fits and scores. Measured rates are tokens
(or images) a second and accelerator; where a source prints only FLOP/s they are converted by the formula it states.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

Row = dict[str, str]

DATA = Path(__file__).parent / "data"
THROUGHPUT_COLUMNS = [
    "id", "table", "source", "document",
    "model", "params", "active", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq", "experts",
    "experts_per_token", "expert_ffn", "precision", "accelerator", "count", "tensor", "pipeline", "data", "context", "expert", "virtual",
    "zero", "micro_batch", "batch", "recompute", "flash", "kernels", "sequence_parallel", "internode", "per_s", "excluded",
]  # fmt: skip
SHAPE = {
    "model": "model", "params": "params", "active": "params_active", "layers": "layers", "hidden": "hidden_size",
    "heads": "attention_heads", "kv_heads": "kv_heads", "ffn": "ffn_hidden_size", "vocab": "vocab_size", "seq": "seq_len",
    "experts": "num_experts", "experts_per_token": "experts_per_token", "expert_ffn": "moe_ffn_hidden_size",
    "accelerator": "accelerator", "count": "accelerator_count", "recompute": "activation_recompute",
}  # fmt: skip
AXES = {"tensor": "tp", "pipeline": "pp", "data": "dp", "context": "cp", "expert": "ep", "zero": "fsdp", "micro_batch": "micro_batch"}
VTRAIN_COLUMNS = ["layers", "hidden", "tensor", "pipeline", "data", "micro_batch", "batch", "seconds"]
RUN_COLUMNS = [
    "id", "source", "publication", "preset", "kind", "architecture",
    "params", "active", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq", "tokens",
    "epochs", "unit", "batch_tokens", "accelerator", "count", "precision", "hours", "excluded",
]  # fmt: skip
# Part of the source's text -> (table, publication). Rows of one publication are left out together when it is scored.
TABLES = (
    ("H100 80GB BF16", "llm-foundry-h100", "llm-foundry"),
    ("A100 80GB with 1600", "llm-foundry-a100-80", "llm-foundry"),
    ("A100 40GB", "llm-foundry-a100-40", "llm-foundry"),
    ("Megatron-Bridge", "megatron-bridge", "megatron-bridge"),
    ("performance_long_sequence", "nemo-long-sequence", "nemo"),
    ("performance_summary.md (NeMo", "nemo", "nemo"),
    ("Megatron-LM examples/llama", "nemo", "megatron-lm-h100"),
    ("cases_april2021", "megatron-sc21", "megatron-sc21"),
    ("tables.tex", "megatron-2020", "megatron-2020"),
    ("2205.05198", "korthikanti", "korthikanti"),
    ("tpu-recipes", "maxtext", "tpu-recipes"),
    ("gpu-recipes", "maxtext", "gpu-recipes"),
    ("maxtext", "maxtext", "maxtext"),
    ("levanter", "levanter", "levanter"),
    ("torchtitan", "torchtitan", "torchtitan"),
    ("bigscience", "bloom", "bloom"),
    ("aws-neuron", "neuron", "neuron"),
    ("resnet50", "resnet", "nvidia-resnet"),
    ("BERT", "bert", "nvidia-bert"),
    ("Transformer-XL", "transformer-xl", "nvidia-transformer-xl"),
    ("2407.21783", "papers", "llama-3"),
    ("2402.15627", "megascale", "megascale"),
    ("2201.11990", "mt-nlg", "mt-nlg"),
    ("2204.02311", "papers", "palm"),
    ("2302.13971", "papers", "llama"),
    ("TinyLlama", "papers", "tinyllama"),
    ("2303.17564", "papers", "bloomberggpt"),
    ("2312.12705", "papers", "frontier"),
    ("modded-nanogpt", "papers", "modded-nanogpt"),
)
# Runs by the start of their id: the publication whose measurements would give their speed away, and the preset of their network.
RUN_PUBLICATIONS = {
    "bloom-": "bloom", "palm": "palm", "gopher": "palm", "gpt3": "palm", "llama1": "llama", "llama3": "llama-3",
    "tinyllama": "tinyllama",    "bloomberggpt": "bloomberggpt",
    "megatron": "megatron-2020", "mt-nlg": "mt-nlg", "modded-nanogpt": "modded-nanogpt", "mpt": "llm-foundry",
    "resnet50": "nvidia-resnet",
}  # fmt: skip
RUN_PRESETS = {
    "resnet50": "resnet-50", "mosaic-sd2": "stable-diffusion-2-base", "llama1-33b": "llama-33b", "llama1-65b": "llama-65b",
    "nanogpt-124m": "gpt-2-124m", "modded-nanogpt": "gpt-2-124m", "llmc-gpt2-350m": "gpt-2-355m", "mlperf-gpt3": "gpt-3-175b",
    "gpt3-175b": "gpt-3-175b", "llama3.1-405b": "llama-3.1-405b", "deepseek-v3": "deepseek-v3", "palm-540b": "palm-540b",
    "olmoe": "olmoe-1b-7b", "santacoder": "santacoder", "bert-base": "bert-base",
}  # fmt: skip
# Tensor ranks that hold norms and residuals whole: sequence parallelism came with Korthikanti et al. 2022, in their selective rows.
WITHOUT_SEQUENCE_PARALLEL = frozenset({"megatron-sc21", "megatron-2020", "mt-nlg", "bloom"})
# Networks slower than the accelerator's usual one [Gbit/s an accelerator]: p4d.24xlarge has 400 for 8, trn1.32xlarge 800 for 16.
INTERNODE = {"bloomberggpt": "50", "neuron": "50"}
# Attention on H100 in FlashAttention-2, written for A100: LLM Foundry, and torchtitan before cuDNN's kernels (its pull request 1000 of
# March 2025). FlashAttention-3 and cuDNN's own run 1.5 to 2 times as fast there (Shah et al. 2024, arXiv 2407.08608, section 4.1).
EARLIER_KERNELS = frozenset({"llm-foundry-h100", "torchtitan"})
WITHOUT_FLASH = frozenset({"megatron-sc21", "megatron-2020", "korthikanti", "mt-nlg", "bloom", "nvidia-bert", "palm", "neuron"})


def main(folder: Path) -> None:
    """Write throughput.csv, vtrain.csv, runs.csv and sources.csv beside this module."""
    throughput = _read(folder / "throughput.csv")
    runs = _read(folder / "training_runs.csv")
    vtrain = _read(folder / "vtrain_single.csv")
    _write("throughput.csv", THROUGHPUT_COLUMNS, (_measurement(row) for row in throughput))
    _write("vtrain.csv", VTRAIN_COLUMNS, (_vtrain(row) for row in vtrain))
    _write("runs.csv", RUN_COLUMNS, (_run(row) for row in runs))
    texts: dict[str, set[str]] = {"vtrain": {vtrain[0]["source"]}}
    for row in throughput:
        texts.setdefault(_table(row["source"])[1], set()).add(_document(row["source"]))
    for row in runs:
        texts[f"run {row['run_id']}"] = {row["source"]}
    _write("sources.csv", ["source", "text"], ({"source": key, "text": "; ".join(sorted(texts[key]))} for key in sorted(texts)))


def _read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(name: str, columns: list[str], rows: Iterable[Row]) -> None:
    with (DATA / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _table(source: str) -> tuple[str, str]:
    return next((table, publication) for part, table, publication in TABLES if part in source)


def _measurement(row: Row) -> Row:
    table, source = _table(row["source"])
    made = {"id": row["row_id"].replace("tp", "m"), "table": table, "source": source, "document": _document(row["source"])}
    made |= {ours: row[theirs] for ours, theirs in (SHAPE | AXES).items()}
    made |= {
        "precision": row["precision"].removesuffix("-amp"),
        "virtual": _virtual_pipeline(row["notes"]),
        "batch": row["global_batch_samples"],
        "flash": "0" if source in WITHOUT_FLASH else "1",
        "kernels": "earlier" if table in EARLIER_KERNELS else "own",
        "sequence_parallel": "0" if _norms_whole(row, source) else "1",
        "internode": INTERNODE.get(source, ""),
        "per_s": _rate(row),
    }
    if _fully_sharded(row):
        made |= {"tensor": "1", "pipeline": "1", "data": made["count"], "context": "1", "expert": "1", "zero": "3"}
    made["excluded"] = _reason(row, made)
    return made


def _document(text: str) -> str:
    """The document a row stands in: one README, one paper's table, one release's list. Its publication may have several."""
    return re.split(r", (?:Model|System):", text)[0]


def _norms_whole(row: Row, source: str) -> bool:
    return source in WITHOUT_SEQUENCE_PARALLEL or (source == "korthikanti" and row["activation_recompute"] == "full")


def _virtual_pipeline(notes: str) -> str:
    if "; 1F1B" in notes:
        return "1"
    found = re.search(r"VP=(\d+)|(\d+) interleaved stages", notes)
    return (found[1] or found[2]) if found else ""


def _fully_sharded(row: Row) -> bool:
    """JAX recipes that name only a batch for each device: one data rank a device, parameters sharded over all."""
    numbers = [row[name] for name in ("micro_batch", "accelerator_count", "global_batch_samples")]
    return not row["dp"] and not row["tp"] and all(numbers) and int(numbers[0]) * int(numbers[1]) == int(numbers[2])


def _rate(row: Row) -> str:
    """Tokens (or images) a second and accelerator, as printed or from the step's time or the FLOP/s with their formula."""
    if row["tokens_per_s_per_accelerator"]:
        return row["tokens_per_s_per_accelerator"]
    if images := re.search(r"images/s per accelerator = ([\d.]+)", row["notes"]):
        return images[1]
    if row["iteration_time_s"] and row["global_batch_samples"] and row["seq_len"] and row["accelerator_count"]:
        tokens = float(row["global_batch_samples"]) * float(row["seq_len"])
        return f"{tokens / float(row['iteration_time_s']) / float(row['accelerator_count']):.5g}"
    if row["tflops_per_accelerator"] and row["layers"] and not row["hfu"]:
        # NeMo and Llama 3: model FLOPs, the whole attention square, no recomputation.
        embedding = float(row["vocab_size"]) * float(row["hidden_size"])
        square = 12 * float(row["layers"]) * float(row["hidden_size"]) * float(row["seq_len"])
        return f"{float(row['tflops_per_accelerator']) * 1e12 / (6 * (float(row['params']) - embedding) + square):.5g}"
    return ""


def _reason(row: Row, made: Row) -> str:
    checks: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("tuning experiment", lambda: row["notes"].startswith("tuning experiment:")),
        ("LoRA", lambda: row["task"] == "lora"),
        ("packed fine-tuning", lambda: row["task"] == "sft"),
        ("hybrid state-space network", lambda: "Mamba" in row["notes"]),
        ("known regression of the release", lambda: "known performance regression" in row["notes"]),
        ("long sequences without context parallelism", lambda: "without context parallelism" in row["notes"]),
        # BERT at 512 tokens is printed 45 % faster a token than at 128, which no work on whole sequences can be.
        ("padded tokens counted but not computed", lambda: made["source"] == "nvidia-bert" and made["seq"] == "512"),
        ("no measured rate", lambda: not made["per_s"]),
        ("scored apart", lambda: made["table"] == "resnet"),
        ("shape not published", lambda: not all(made[name] for name in ("layers", "hidden", "heads", "ffn", "vocab", "seq"))),
        ("batch or count not published", lambda: not (made["batch"] and made["count"])),
        ("layout does not make up the machine", lambda: not _consistent(made)),
    )
    return next((reason for reason, holds in checks if holds()), "")


def _consistent(made: Row) -> bool:
    axes = [made[name] for name in ("tensor", "pipeline", "data", "context")]
    if not made["data"]:
        return True
    product = 1
    for axis in axes:
        product *= int(axis or 1)
    return product == int(made["count"])


def _vtrain(row: Row) -> Row:
    names = {"layers": "layers", "hidden": "hidden_size", "tensor": "tp", "pipeline": "pp", "data": "dp", "micro_batch": "micro_batch"}
    made = {ours: row[theirs] for ours, theirs in names.items()}
    return made | {"batch": row["global_batch_samples"], "seconds": row["iteration_time_s"]}


def _run(row: Row) -> Row:
    names = {name: SHAPE[name] for name in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq", "accelerator", "count")}
    made = {ours: row[theirs] for ours, theirs in names.items()}
    made |= {
        "id": row["run_id"], "source": f"run {row['run_id']}", "publication": _by_start(RUN_PUBLICATIONS, row["run_id"]),
        "preset": _by_start(RUN_PRESETS, row["run_id"]), "kind": row["kind"], "architecture": row["architecture"],
        "params": row["params_total"], "active": row["params_active"], "tokens": row["training_tokens"], "epochs": row["epochs"],
        "unit": row["data_unit"], "batch_tokens": row["global_batch_tokens"], "precision": row["precision"].removesuffix("-amp"),
        "hours": row["reported_accelerator_hours"],
    }  # fmt: skip
    made["excluded"] = _run_reason(row, made)
    return made


def _by_start(table: dict[str, str], run: str) -> str:
    return next((value for start, value in table.items() if run.startswith(start)), "")


def _run_reason(row: Row, made: Row) -> str:
    checks = (
        ("not pretraining", row["kind"] != "pretrain"),
        ("accelerator or count not published", not (made["accelerator"] and made["count"])),
        ("hours not published", not made["hours"]),
        ("tokens not published", not made["tokens"]),
        ("precision not published", not made["precision"]),
        ("no FLOPs a sample", made["unit"] != "tokens" and row["architecture"] not in ("cnn", "diffusion")),
        ("shape not published", not (made["preset"] or (made["layers"] and made["hidden"] and made["heads"] and made["seq"]))),
        ("mixture of experts without its shape", row["architecture"] == "moe-transformer" and not made["preset"]),
        ("encoder and decoder, or frozen parts", row["run_id"] in ("t5-11b", "blip2-flant5xxl", "clip-rn50x64", "big-lama")),
    )
    return next((reason for reason, holds in checks if holds), "")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
