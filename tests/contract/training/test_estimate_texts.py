"""What an estimate says of itself: units that are easily mistaken, figures that are borrowed, axes that make no sense together."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from flask.testing import FlaskClient

GIB = 2**30
RESNET = {
    "model": {"preset": "resnet-50"},
    "data": {"samples": 100_000_000},
    "training": {"precision": "bf16"},
    "hardware": {"accelerator": "A100-80GB", "count": 8},
    "price": {"usd_per_accelerator_hour": 2.0},
}
VIT = RESNET | {"model": {"preset": "vit-l-16"}, "data": {"tokens": "197B"}}
LLAMA = RESNET | {"model": {"preset": "llama-2-7b"}, "data": {"tokens": "1T"}}


def ask(client: FlaskClient, request: dict[str, Any], **changes: dict[str, Any]) -> Any:
    """The answer to a request with some fields of its sections changed."""
    asked = copy.deepcopy(request)
    for section, fields in changes.items():
        asked[section] = asked.get(section, {}) | fields
    return client.post("/v1/estimate", json=asked)


def sources(answer: Any) -> dict[str, str]:
    """Where what was assumed is from, by field."""
    return {item["field"]: item["source"] for item in answer.get_json()["assumptions"]}


def values(answer: Any) -> dict[str, Any]:
    """What was assumed, by field."""
    return {item["field"]: item["value"] for item in answer.get_json()["assumptions"]}


def borrowed(answer: Any) -> list[str]:
    """The warnings that a speed is borrowed."""
    return [warning for warning in answer.get_json()["warnings"] if "no published throughput" in warning]


def width(answer: Any) -> float:
    """How far apart the speed's ends are."""
    rate = answer.get_json()["throughput"]["tokens_per_s_per_accelerator"]
    return float(rate["p90"] / rate["p10"])


def test_memory_is_listed_in_the_unit_of_its_name(client: FlaskClient) -> None:
    """An A100's 80 GB are the data sheet's name for 80 GiB; usable memory is told in both, and is what an estimate compares with."""
    part = client.get("/v1/accelerators?accelerator=A100-80GB").get_json()["items"][0]
    assert part["memory_gb"] == part["usable_memory_gib"] == 80
    assert part["usable_memory_gb"] == pytest.approx(80 * GIB / 1e9)
    capacity_gb = ask(client, LLAMA).get_json()["memory"]["capacity_gb"]
    assert capacity_gb == pytest.approx(part["usable_memory_gb"])


def test_every_figure_of_an_accelerator_says_its_unit(client: FlaskClient) -> None:
    """The specification describes each quantity, and that the nominal memory is not in 1e9 bytes."""
    described = client.get("/openapi.json").get_json()["components"]["schemas"]["Accelerator"]["properties"]
    for name, unit in {
        "memory_gb": "2^30 bytes",
        "usable_memory_gb": "1e9 bytes",
        "usable_memory_gib": "2^30 bytes",
        "memory_bandwidth_gb_per_s": "1e9 bytes a second",
        "peak_tflops": "1e12 FLOP a second",
        "link_gb_per_s": "1e9 bytes a second",
        "internode_gbit_per_s": "1e9 bits a second",
        "tdp_w": "W",
    }.items():
        assert unit in described[name]["description"], name


def test_a_vits_tokens_are_said_to_be_patches(client: FlaskClient) -> None:
    """A batch and data stated in tokens are told as the images that they are; of a language model nothing is said."""
    answer = ask(client, VIT, training={"global_batch_tokens": 4096 * 197})
    assert values(answer)["training.global_batch_tokens"] == 4096 * 197
    assert "tokens are patches: 4,096 images of 197 a step" in sources(answer)["training.global_batch_tokens"]
    assert "tokens are patches: 1,000,000,000 images of 197" in sources(answer)["data.tokens"]
    assert "patches" not in str(sources(ask(client, LLAMA)))


def test_images_need_no_word_on_patches_in_the_data(client: FlaskClient) -> None:
    """Samples are what the caller counts: the default batch alone is explained."""
    said = sources(ask(client, VIT | {"data": {"samples": 10**9}}))
    assert "data.tokens" not in said
    assert "tokens are patches" in said["training.global_batch_tokens"]


def test_the_specification_says_that_a_vits_batch_counts_patches(client: FlaskClient) -> None:
    """Where the field is described, in a word."""
    described = client.get("/openapi.json").get_json()["components"]["schemas"]["Training"]["properties"]
    assert "patches, not images" in described["global_batch_tokens"]["description"]


def test_a_measured_network_on_a_measured_family_is_named_with_its_source(client: FlaskClient) -> None:
    """ResNet-50 has published rates on the A100 at 16 bit: nothing is borrowed."""
    answer = ask(client, RESNET)
    assert sources(answer)["throughput.peak_share"].startswith("resnet-50 on ampere at 16-bit (github NVIDIA/DeepLearningExamples")
    assert borrowed(answer) == []


@pytest.mark.parametrize(
    ("accelerator", "model"), [("H100", "resnet-50"), ("tpu-v4", "resnet-50"), ("L40S", "resnet-50"), ("A100-80GB", "resnet-152")]
)
def test_other_networks_and_families_borrow_and_say_so(client: FlaskClient, accelerator: str, model: str) -> None:
    """One network's share stands for all: the warning names it and its family, and the range is wider."""
    answer = ask(client, RESNET, hardware={"accelerator": accelerator}, model={"preset": model})
    (warning,) = borrowed(answer)
    assert "borrowed from resnet-50 on ampere at 16-bit, with a wider range" in warning
    assert "resnet50v1.5" in sources(answer)["throughput.peak_share"]
    assert width(answer) > width(ask(client, RESNET))


def test_a_measured_speed_borrows_nothing(client: FlaskClient) -> None:
    """The caller's own rate needs no published one."""
    answer = ask(client, RESNET, hardware={"accelerator": "H100"}, efficiency={"mfu": 0.1})
    assert borrowed(answer) == []
    assert "throughput.peak_share" not in values(answer)


@pytest.mark.parametrize("request_of", [LLAMA, RESNET], ids=["llama-2-7b", "resnet-50"])
def test_chunks_of_stages_never_run_without_a_pipeline(client: FlaskClient, request_of: dict[str, Any]) -> None:
    """A virtual pipeline whose pipeline is searched is answered with one above 1, or refused with what would be right."""
    answer = ask(client, request_of, training={"parallelism": {"virtual_pipeline": 4}})
    if answer.status_code == 200:
        assert answer.get_json()["throughput"]["parallelism"]["pipeline"] > 1
    else:
        (error,) = answer.get_json()["errors"]
        assert error["pointer"].startswith("/training/parallelism")
        assert "a pipeline above 1" in error["message"]
    stated = ask(client, LLAMA, training={"parallelism": {"virtual_pipeline": 4, "pipeline": 2}})
    assert stated.get_json()["throughput"]["parallelism"]["virtual_pipeline"] == 4
