"""Make the project's own compact tables from a folder of reference data: `python -m tools.calibration.import_reference FOLDER`.

Rows keep only what a prediction needs; `excluded` says why a row is left out of fits and scores. Measured rates are tokens
(or images) a second and accelerator; where a source prints only FLOP/s they are converted by the formula it states.
"""

from __future__ import annotations

import csv
import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

Row = dict[str, str]

DATA = Path(__file__).parent / "data"
REFERENCE = tomllib.loads((Path(__file__).parent / "reference.toml").read_text(encoding="utf-8"))


def main(folder: Path) -> None:
    """Write throughput.csv, pretraining.csv, vtrain.csv, runs.csv and sources.csv beside this module."""
    throughput = _read(folder / "throughput.csv")
    pretraining = _read(folder / "pretraining.csv")
    runs = _read(folder / "training_runs.csv")
    vtrain = _read(folder / "vtrain_single.csv")
    _write("throughput", (_measurement(row) for row in throughput))
    _write("pretraining", (_pretraining(row) for row in pretraining))
    _write("vtrain", (_vtrain(row) for row in vtrain))
    _write("runs", (_run(row) for row in runs))
    texts: dict[str, set[str]] = {"vtrain": {vtrain[0]["source"]}}
    for row in throughput:
        texts.setdefault(_listed(REFERENCE["tables"], row["source"])[1], set()).add(_document(row["source"]))
    for row in pretraining:
        texts.setdefault(_listed(REFERENCE["pretraining_tables"], row["source"])[1], set()).add(row["source"])
    for row in runs:
        texts[f"run {row['run_id']}"] = {row["source"]}
    texts |= {key: {text} for key, text in REFERENCE["other_sources"].items()}
    _write("sources", ({"source": key, "text": "; ".join(sorted(texts[key]))} for key in sorted(texts)))


def _read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(name: str, rows: Iterable[Row]) -> None:
    with (DATA / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, REFERENCE["columns"][name], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _listed(tables: dict[str, list[str]], source: str) -> tuple[str, str]:
    table, publication = next(names for part, names in tables.items() if part in source)
    return table, publication


def _measurement(row: Row) -> Row:
    table, source = _listed(REFERENCE["tables"], row["source"])
    kernels = REFERENCE["kernels"]
    made = {"id": row["row_id"].replace("tp", "m"), "table": table, "source": source, "document": _document(row["source"])}
    made |= {ours: row[theirs] for ours, theirs in (REFERENCE["shape"] | REFERENCE["axes"]).items()}
    made |= {
        "precision": row["precision"].removesuffix("-amp"),
        "virtual": _virtual_pipeline(row["notes"]),
        "batch": row["global_batch_samples"],
        "flash": "0" if source in kernels["without_flash"] else "1",
        "kernels": _kernels(table, source),
        "sequence_parallel": "0" if _norms_whole(row, source) else "1",
        "internode": REFERENCE["internode"].get(source, ""),
        "software": _software(row["notes"]),
        "year": _year(row["source"]),
        "per_s": _rate(row),
    }
    if _fully_sharded(row):
        made |= {"tensor": "1", "pipeline": "1", "data": made["count"], "context": "1", "expert": "1", "zero": "3"}
    made["model"] = REFERENCE["preset_shapes"].get(made["model"], made["model"])
    made["zero"] = "3" if made["id"] in REFERENCE["fully_sharded"] else made["zero"]
    made["excluded"] = _reason(row, made)
    return made


def _pretraining(row: Row) -> Row:
    """A row of the second collection: its shape is complete, its group is what is left out together."""
    table, source = _listed(REFERENCE["pretraining_tables"], row["source"])
    names = REFERENCE["shape"] | REFERENCE["shape_in_full"] | REFERENCE["axes"]
    made = {"id": row["row_id"], "table": table, "source": source, "document": row["group"]}
    made |= {ours: row[theirs] for ours, theirs in names.items()}
    made |= {
        "precision": row["precision"],
        "expert_tensor": row["tp"] if "expert tensor parallel = tp" in row["notes"] else "",
        "virtual": row["virtual_pipeline"],
        "batch": row["global_batch_samples"] or _one_micro_batch(row),
        "flash": "0" if table in REFERENCE["kernels"]["without_flash_tables"] else "1",
        "recompute": "none" if "activation offloading" in row["notes"] else row["activation_recompute"],
        "kernels": _kernels(table, source) if _has_faster_attention(row["accelerator"]) else "own",
        "sequence_parallel": "1",
        "internode": _internode(row["internode_gbit_s_per_node"]),
        "products": f"{REFERENCE['slower_products'].get(table, '')}",
        "states": "bf16" if table in REFERENCE["states_in_16_bit"] else "",
        "software": _software(row["notes"]),
        "year": _year(row["source"]),
        "per_s": row["tokens_per_s_per_accelerator"],
    }
    made["model"] = REFERENCE["preset_shapes"].get(made["model"], made["model"])
    made["zero"] = "3" if made["id"] in REFERENCE["fully_sharded"] else made["zero"]
    made["memory_basis"] = REFERENCE["memory_basis"][table] if made["memory_gb"] else ""
    made["excluded"] = row["excluded"] or _reason(row, made)
    return made


def _kernels(table: str, source: str) -> str:
    """Generation of attention's kernels in a table, or in all of its publication."""
    return next((kind for kind in ("first", "earlier") if {table, source} & set(REFERENCE["kernels"][kind])), "own")


def _has_faster_attention(accelerator: str) -> bool:
    """Whether its vendor's kernels are faster than those that PyTorch takes."""
    return accelerator.startswith(tuple(REFERENCE["kernels"]["faster_than_pytorch"]))


def _year(source: str) -> str:
    """Year of the measurement's software."""
    return str(next(year for part, year in REFERENCE["years"].items() if part in source))


def _one_micro_batch(row: Row) -> str:
    """Batch of data ranks that take one micro-batch each, where no batch is printed: a benchmark of FSDP accumulates nothing."""
    return str(int(row["micro_batch"]) * int(row["dp"])) if row["micro_batch"] and row["dp"] == row["accelerator_count"] else ""


def _software(notes: str) -> str:
    """Month of the software's release as a fraction of its year, with which a whole year ends."""
    found = re.search(r"(?:NeMo container|release) v?(\d\d)\.(\d\d)", notes)
    return f"{1999 + int(found[1]) + int(found[2]) / 12:.2f}" if found else ""


def _internode(per_node: str) -> str:
    """Network of one accelerator of the usual eight of a node [Gbit/s]."""
    return f"{float(per_node) / 8:g}" if per_node else ""


def _document(text: str) -> str:
    """The document a row stands in: one README, one paper's table, one release's list. Its publication may have several."""
    return re.split(r", (?:Model|System):", text)[0]


def _norms_whole(row: Row, source: str) -> bool:
    return source in REFERENCE["kernels"]["without_sequence_parallel"] or (
        source == "korthikanti" and row["activation_recompute"] == "full"
    )


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
        ("known regression of the release", lambda: "known performance regression" in row["notes"]),
        ("long sequences without context parallelism", lambda: "without context parallelism" in row["notes"]),
        # BERT at 512 tokens is printed 45 % faster a token than at 128, which no work on whole sequences can be.
        ("padded tokens counted but not computed", lambda: made["source"] == "nvidia-bert" and made["seq"] == "512"),
        ("no measured rate", lambda: not made["per_s"]),
        ("scored apart", lambda: made["table"] == "resnet"),
        (
            "shape not published",
            lambda: (
                made["model"] not in REFERENCE["preset_shapes"].values()
                and not all(made[name] for name in ("layers", "hidden", "heads", "ffn", "vocab", "seq"))
            ),
        ),
        ("batch or count not published", lambda: not (made["batch"] and made["count"])),
        ("layout does not make up the machine", lambda: not _consistent(made)),
    )
    return next((reason for reason, holds in checks if holds()), "")


def _consistent(made: Row) -> bool:
    axes = ("tensor", "pipeline", "data", "context")
    return not made["data"] or math.prod(int(made[axis] or 1) for axis in axes) == int(made["count"])


def _vtrain(row: Row) -> Row:
    names = REFERENCE["shape"] | REFERENCE["axes"]
    made = {ours: row[names[ours]] for ours in ("layers", "hidden", "tensor", "pipeline", "data", "micro_batch")}
    return made | {"batch": row["global_batch_samples"], "seconds": row["iteration_time_s"]}


def _run(row: Row) -> Row:
    shape = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq", "accelerator", "count")
    made = {ours: row[REFERENCE["shape"][ours]] for ours in shape}
    made |= {
        "id": row["run_id"], "source": f"run {row['run_id']}", "publication": _by_start(REFERENCE["run_publications"], row["run_id"]),
        "preset": _by_start(REFERENCE["run_presets"], row["run_id"]), "year": row["year"], "kind": row["kind"],
        "architecture": row["architecture"],
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
