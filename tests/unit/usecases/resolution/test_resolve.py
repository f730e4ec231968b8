"""From a request to a run: every default chosen and noted, every name looked up, every contradiction named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.domain.errors import DomainError, InvalidRequest, UnknownName
from service.domain.training.hardware import Accelerator
from service.domain.training.model import GenericNetwork, Transformer
from service.domain.training.run import AuxiliaryModels, Axes, Cluster, Data, Efficiency, Training
from service.engine.training.parameters import total_parameters
from service.presets.hardware.accelerators import find_accelerator, load_accelerators
from service.presets.training.models import find_model
from service.usecases.resolution import cluster as clusters
from service.usecases.resolution import run_settings
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.data import resolve_data
from service.usecases.resolution.price import Price
from service.usecases.resolution.training import resolve_axes, resolve_training
from tests.unit.usecases.requests import noted, pointer_of

THIS_YEAR = 2026
H100 = load_accelerators()["NVIDIA-H100-80GB-SXM"]
V100 = load_accelerators()["NVIDIA-V100-16GB-SXM2"]
LLAMA = find_model("llama-2-7b").model
RESNET = find_model("resnet-50").model
T5 = find_model("t5-11b").model
VIT = find_model("vit-l-16").model


NO_FABRIC = "Standard_ND96is_noIB_H100_v5"


def rented(instance_type: str, accelerators: int = 8, provider: str = "azure") -> Price:
    """The price of an instance."""
    return Price(2.0, "price list", stale=False, provider=provider, instance_type=instance_type, accelerators_per_instance=accelerators)


def resolve_cluster(hardware: dict[str, Any], notes: AssumptionLog, price: Price | None = None) -> Cluster:
    """The machine of a request's `hardware`."""
    return clusters.resolve_cluster(find_accelerator(hardware["accelerator"]), hardware, notes, price)


def cluster(count: int = 64, part: Accelerator = H100) -> Cluster:
    return Cluster(part, count, 8, 400)


def training(
    given: dict[str, Any], model: Any = LLAMA, count: int = 64, notes: AssumptionLog | None = None, seq_len: int | None = 4096
) -> Training:
    return resolve_training(given, model, seq_len, cluster(count), THIS_YEAR, notes or AssumptionLog())


class TestHardware:
    """The machine."""

    def test_a_part_brings_its_node_and_network(self) -> None:
        """Eight to a node, their network as the data sheet has it, a device's share of it."""
        notes = AssumptionLog()
        found = resolve_cluster({"accelerator": "NVIDIA-H100-80GB-SXM", "count": 64}, notes)
        assert found == Cluster(H100, 64, 8, 400)
        assert noted(notes) == {"hardware.accelerators_per_node": 8, "hardware.inter_node_gbps": 3200}

    def test_inside_one_node_no_network_is_assumed(self) -> None:
        """What is not used is not reported."""
        notes = AssumptionLog()
        resolve_cluster({"accelerator": "NVIDIA-H100-80GB-SXM", "count": 8}, notes)
        assert noted(notes) == {"hardware.accelerators_per_node": 8}

    def test_a_stated_node_and_network_are_the_callers(self) -> None:
        """The network is of a whole node, so four cards share it."""
        notes = AssumptionLog()
        given = {"accelerator": "NVIDIA-H100-80GB-SXM", "count": 64, "accelerators_per_node": 4, "inter_node_gbps": 200.0}
        assert resolve_cluster(given, notes) == Cluster(H100, 64, 4, 50)
        assert noted(notes) == {}

    def test_what_is_rented_brings_its_own_network(self) -> None:
        """An Azure size without InfiniBand has 80 Gbit/s for eight, where the data sheet has 3,200; the note says so."""
        notes = AssumptionLog()
        found = resolve_cluster({"accelerator": H100.name, "count": 64}, notes, rented(NO_FABRIC))
        assert found == Cluster(H100, 64, 8, 10)
        note = next(each for each in notes.assumptions if each.field == "hardware.inter_node_gbps")
        assert note.value == 80
        assert f"azure {NO_FABRIC}: 80 Gbit/s an instance, Ethernet, no fast fabric" in note.source

    @pytest.mark.parametrize(("accelerators", "per_node", "gbit_per_s"), [(8, 4, 40), (4, 8, 160), (16, 8, 40)])
    def test_a_node_has_its_accelerators_share_of_the_instances_network(self, accelerators: int, per_node: int, gbit_per_s: float) -> None:
        """80 Gbit/s are shared by the accelerators of the instance, and a node has as many shares as accelerators."""
        notes = AssumptionLog()
        given = {"accelerator": H100.name, "count": 64, "accelerators_per_node": per_node}
        found = resolve_cluster(given, notes, rented(NO_FABRIC, accelerators))
        assert noted(notes)["hardware.inter_node_gbps"] == gbit_per_s == found.internode_gbit_per_s * per_node

    def test_a_stated_network_stands_over_that_of_what_is_rented(self) -> None:
        """The caller knows better."""
        given = {"accelerator": H100.name, "count": 64, "inter_node_gbps": 1600.0}
        assert resolve_cluster(given, AssumptionLog(), rented(NO_FABRIC)).internode_gbit_per_s == 200

    def test_a_stated_price_keeps_the_data_sheets_network(self) -> None:
        """Nothing is known of who sells it."""
        notes = AssumptionLog()
        own = Price(2.0, "caller", stale=False, accelerator=H100.name)
        assert resolve_cluster({"accelerator": H100.name, "count": 64}, notes, own) == Cluster(H100, 64, 8, 400)
        assert {each.source for each in notes.assumptions} == {H100.source}

    def test_of_an_instance_nobody_knows_the_data_sheets_network_is_assumed(self) -> None:
        """The note says of whom it is not known, and whose figure it is."""
        notes = AssumptionLog()
        found = resolve_cluster({"accelerator": H100.name, "count": 64}, notes, rented("eight", provider="somewhere"))
        assert found == Cluster(H100, 64, 8, 400)
        source = notes.assumptions[-1].source
        assert "the network of somewhere eight is not known" in source
        assert H100.source in source

    def test_a_part_without_a_network_of_its_own_is_given_the_usual_card(self) -> None:
        """Desktop cards have none on their data sheet; the assumption says whose card it is."""
        notes = AssumptionLog()
        lonely = next(part for part in load_accelerators().values() if part.internode_gbit_per_s is None and part.link_gb_per_s is None)
        found = resolve_cluster({"accelerator": lonely.name, "count": 1000}, notes)
        assert found.internode_gbit_per_s > 0
        assert noted(notes)["hardware.inter_node_gbps"] == found.internode_gbit_per_s * found.accelerators_per_node

    def test_an_ambiguous_alias_is_an_assumption(self) -> None:
        """H100 is the usual part of several; the note says which others there are."""
        notes = AssumptionLog()
        assert resolve_cluster({"accelerator": "h100", "count": 8}, notes).accelerator is H100
        note = notes.assumptions[0]
        assert (note.field, note.value) == ("hardware.accelerator", "NVIDIA-H100-80GB-SXM")
        assert "h100 may also mean NVIDIA-H100-80GB-PCIe" in note.source

    def test_an_unknown_accelerator_is_refused_with_near_names(self) -> None:
        """The pointer leads to the name."""
        with pytest.raises(UnknownName) as caught:
            resolve_cluster({"accelerator": "H10", "count": 8}, AssumptionLog())
        assert caught.value.pointer == "/hardware/accelerator"
        assert "H100" in caught.value.near


class TestData:
    """What is trained on."""

    def test_tokens_are_what_is_trained_on_each_epoch(self) -> None:
        """One epoch is an assumption unless stated."""
        notes = AssumptionLog()
        assert resolve_data({"tokens": 10**12}, LLAMA, 4096, notes) == Data(1e12, 1e12, 1)
        assert noted(notes) == {"data.epochs": 1}
        assert resolve_data({"tokens": 10**12, "epochs": 4.0}, LLAMA, 4096, AssumptionLog()).trained_tokens == 4e12

    def test_raw_tokens_shrink_by_both_yields(self) -> None:
        """15T raw, 40 % left by filters, 70 % of that by deduplication, twice: 8.4T trained."""
        notes = AssumptionLog()
        given = {"raw_tokens": 15 * 10**12, "filter_yield": 0.4, "dedupe_yield": 0.7, "epochs": 2.0}
        found = resolve_data(given, LLAMA, 4096, notes)
        assert (found.raw_tokens, found.effective_tokens) == (15e12, pytest.approx(4.2e12))
        assert found.trained_tokens == pytest.approx(8.4e12)
        assert noted(notes) == {}

    def test_a_yield_left_out_is_one_and_noted(self) -> None:
        """Nothing is filtered that nobody says is filtered."""
        notes = AssumptionLog()
        assert resolve_data({"raw_tokens": 10**12, "filter_yield": 0.5}, LLAMA, 4096, notes).effective_tokens == 5e11
        assert noted(notes) == {"data.dedupe_yield": 1, "data.epochs": 1}

    def test_samples_of_a_transformer_are_whole_sequences(self) -> None:
        """A million sequences of 4,096 tokens."""
        assert resolve_data({"samples": 10**6}, LLAMA, 4096, AssumptionLog()).trained_tokens == 4.096e9

    def test_samples_of_other_networks_are_counted_as_they_are(self) -> None:
        """1.28 million images are that many samples."""
        assert resolve_data({"samples": 1_281_167, "epochs": 90.0}, RESNET, 1, AssumptionLog()).trained_tokens == 1_281_167 * 90

    def test_tokens_for_a_network_counted_by_images_are_refused(self) -> None:
        """The message names its unit."""
        with pytest.raises(InvalidRequest, match="image") as caught:
            resolve_data({"tokens": 10**9}, RESNET, 1, AssumptionLog())
        assert caught.value.pointer == "/data/tokens"

    @pytest.mark.parametrize("given", [{}, {"epochs": 2.0}, {"tokens": 1, "samples": 1}, {"tokens": 1, "raw_tokens": 1, "samples": 1}])
    def test_exactly_one_amount_is_stated(self, given: dict[str, Any]) -> None:
        """None and two are refused alike."""
        assert pointer_of(lambda: resolve_data(given, LLAMA, 4096, AssumptionLog())) == "/data"

    @pytest.mark.parametrize("name", ["filter_yield", "dedupe_yield"])
    def test_yields_belong_to_raw_tokens(self, name: str) -> None:
        """Tokens are what is left already."""
        assert pointer_of(lambda: resolve_data({"tokens": 10**9, name: 0.5}, LLAMA, 4096, AssumptionLog())) == f"/data/{name}"

    @pytest.mark.parametrize("given", [{"raw_tokens": 10**9, "filter_yield": 1e-12}, {"tokens": 1, "epochs": 1e-6}])
    def test_less_than_one_token_is_refused(self, given: dict[str, Any]) -> None:
        """There is no cost a token of nothing."""
        assert pointer_of(lambda: resolve_data(given, LLAMA, 4096, AssumptionLog())) == f"/data/{next(iter(given))}"

    def test_shares_are_passed_on(self) -> None:
        """They are reported in the answer's tokens."""
        given = {"tokens": 10**9, "quality_share": 0.2, "robustness_share": 0.0}
        found = resolve_data(given, LLAMA, 4096, AssumptionLog())
        assert (found.quality_share, found.robustness_share) == (0.2, 0.0)


class TestTraining:
    """How it is trained."""

    def test_every_default_is_noted(self) -> None:
        """With nothing stated, everything that changes a figure is in the assumptions."""
        notes = AssumptionLog()
        found = training({}, notes=notes)
        assert (found.method, found.precision, found.optimizer, found.seq_len) == ("pretrain", "bf16", "adamw", 4096)
        assert found.axes == Axes()
        assert noted(notes) == {
            "training.method": "pretrain",
            "training.precision": "bf16",
            "training.optimizer": "adamw",
            "training.seq_len": 4096,
            "training.global_batch_tokens": found.global_batch * 4096,
            "training.flash_attention": True,
            "training.sequence_parallel": True,
            "training.count_full_attention": True,
            "training.software_year": THIS_YEAR,
        }

    def test_nothing_stated_is_assumed(self) -> None:
        """The caller's own values leave no notes."""
        notes = AssumptionLog()
        given = {
            "method": "continued_pretrain",
            "precision": "fp8",
            "optimizer": "muon",
            "seq_len": 8192,
            "global_batch_tokens": 8192 * 512,
            "flash_attention": False,
            "sequence_parallel": True,
            "count_full_attention": False,
            "input_tokens_per_s_per_node": 1e6,
            "software_year": 2023,
        }
        found = training(given, notes=notes)
        assert noted(notes) == {}
        assert (found.global_batch, found.flash_attention, found.count_full_attention) == (512, False, False)
        assert (found.precision, found.optimizer, found.input_tokens_per_s_per_node) == ("fp8", "muon", 1e6)

    def test_precisions_older_than_flash_attention_are_run_by_the_software_of_their_time(self) -> None:
        """fp16 runs on A100 keep scores and hold norms whole unless the caller says otherwise; both are noted. On H100 none is that old."""
        notes = AssumptionLog()
        a100 = cluster(part=load_accelerators()["NVIDIA-A100-80GB-SXM"])
        found = resolve_training({"precision": "fp16"}, LLAMA, 4096, a100, THIS_YEAR, notes)
        assert (found.flash_attention, found.sequence_parallel) == (False, False)
        assert noted(notes)["training.flash_attention"] is False
        assert noted(notes)["training.sequence_parallel"] is False
        given = {"precision": "fp16", "flash_attention": True}
        assert resolve_training(given, LLAMA, 4096, a100, THIS_YEAR, AssumptionLog()).sequence_parallel
        assert training({"precision": "fp16"}).flash_attention
        assert training({"precision": "bf16"}).flash_attention

    def test_the_sequence_is_the_models_published_one_else_the_usual(self) -> None:
        """A ViT's is its patches; a network counted by samples has none."""
        assert training({}, seq_len=2048).seq_len == 2048
        assert training({}, seq_len=None).seq_len == 4096
        assert training({}, VIT, seq_len=None).seq_len == 197
        assert training({"seq_len": 512}, RESNET, seq_len=None).seq_len == 1

    def test_an_encoder_decoder_has_a_decoders_sequence(self) -> None:
        """T5's proportion of targets to inputs, noted; other models have none."""
        notes = AssumptionLog()
        found = training({"seq_len": 512}, T5, notes=notes)
        assert found.decoder_seq_len == 114
        assert noted(notes)["training.decoder_seq_len"] == 114
        assert training({"decoder_seq_len": 256}, T5).decoder_seq_len == 256
        assert training({}).decoder_seq_len == 0

    def test_a_precision_the_part_does_not_have_is_refused(self) -> None:
        """A V100 multiplies no bf16; the message lists what it has and who has bf16, and by default the usual one of those is taken."""
        with pytest.raises(InvalidRequest, match=r"NVIDIA-V100-16GB-SXM2 .*bf16.* fp16; bf16 is computed by NVIDIA-A100") as caught:
            resolve_training({"precision": "bf16"}, LLAMA, 4096, cluster(part=V100), THIS_YEAR, AssumptionLog())
        assert caught.value.pointer == "/training/precision"
        assert resolve_training({}, LLAMA, 4096, cluster(part=V100), THIS_YEAR, AssumptionLog()).precision == "fp16"

    def test_a_batch_is_rounded_to_whole_sequences(self) -> None:
        """The rounded one is reported with the stated one; one that fits exactly is not."""
        notes = AssumptionLog()
        assert training({"global_batch_tokens": 4_000_000}, notes=notes).global_batch == 977
        assert noted(notes)["training.global_batch_tokens"] == 977 * 4096
        assert training({"global_batch_tokens": 4097}).global_batch == 1
        exact = AssumptionLog()
        assert training({"global_batch_tokens": 4_194_304}, notes=exact).global_batch == 1024
        assert "training.global_batch_tokens" not in noted(exact)

    @pytest.mark.parametrize(
        ("method", "model", "count", "batch"),
        [
            ("pretrain", LLAMA, 64, 1024),
            ("lora", LLAMA, 64, 128),
            ("dpo", LLAMA, 64, 128),
            ("pretrain", RESNET, 64, 4096),
            ("pretrain", VIT, 64, 4096),
            ("full_finetune", LLAMA, 4096, 512),
            ("pretrain", RESNET, 16_384, 16_384),
        ],
    )
    def test_the_usual_batch_goes_with_model_and_method_and_feeds_the_machine(
        self, method: str, model: Any, count: int, batch: int
    ) -> None:
        """Four million tokens to pre-train a 7B, 128 sequences to tune it, thousands of images; never too few to share out."""
        assert training({"method": method}, model, count).global_batch == batch

    def test_the_default_batch_can_be_shared_out_whatever_the_heads(self) -> None:
        """Seventeen heads cannot be split over eight accelerators, so each accelerator gets a sequence of its own."""
        odd = Transformer(14, 1088, 17, 17, 64, 4352, 50_257)
        notes = AssumptionLog()
        assert training({"method": "lora"}, odd, 1024, notes).global_batch == 1024
        assert "one sequence for every 1 of 1024" in {n.field: n.source for n in notes.assumptions}["training.global_batch_tokens"]

    def test_the_caller_may_fix_any_part_of_the_layout(self) -> None:
        """What is not fixed is searched."""
        given = {"parallelism": {"tensor": 8, "pipeline": 2}, "activation_recompute": "full", "micro_batch": 2, "zero_stage": 1}
        assert resolve_axes(given) == Axes(tensor=8, pipeline=2, micro_batch=2, zero_stage=1, recompute="full")
        assert resolve_axes({"parallelism": "auto", "activation_recompute": "auto"}) == resolve_axes({}) == Axes()

    def test_chunks_of_a_stage_need_a_pipeline(self) -> None:
        """Refused on a pipeline of one stage; one chunk is none, and a pipeline that is searched may still be one."""
        given = {"parallelism": {"pipeline": 1, "virtual_pipeline": 4}}
        assert pointer_of(lambda: resolve_axes(given)) == "/training/parallelism/virtual_pipeline"
        with pytest.raises(InvalidRequest, match="state a pipeline above 1, or leave virtual_pipeline out"):
            resolve_axes(given)
        assert resolve_axes({"parallelism": {"pipeline": 1, "virtual_pipeline": 1}}) == Axes(pipeline=1, virtual_pipeline=1)
        assert resolve_axes({"parallelism": {"virtual_pipeline": 4}}) == Axes(virtual_pipeline=4)

    def test_adapters_have_a_rank_only_where_they_are_trained(self) -> None:
        """Sixteen unless stated."""
        notes = AssumptionLog()
        assert training({"method": "qlora"}, notes=notes).lora_rank == 16
        assert noted(notes)["training.lora_rank"] == 16
        assert training({"method": "lora", "lora_rank": 8}).lora_rank == 8
        assert training({}).lora_rank == 0

    def test_adapters_are_trained_as_common_recipes_do(self) -> None:
        """On attention and shared layers, on sequences of 1,024; QLoRA with a paged 8-bit optimizer: all noted."""
        notes = AssumptionLog()
        found = training({"method": "qlora"}, notes=notes)
        assert (found.adapter_targets, found.optimizer, found.seq_len) == (("all_linear",), "adamw_paged_8bit", 1024)
        assert noted(notes).items() >= {
            "training.adapter_targets": "all_linear", "training.optimizer": "adamw_paged_8bit", "training.seq_len": 1024,
        }.items()  # fmt: skip
        assert training({"method": "lora"}).optimizer == "adamw"
        stated = training({"method": "lora", "seq_len": 4096, "adapter_targets": ["q_proj", "v_proj"]})
        assert (stated.seq_len, stated.adapter_targets) == (4096, ("q_proj", "v_proj"))

    @pytest.mark.parametrize("targets", ["experts", ["q_proj", "wq"], ["kv_b_proj"]])
    def test_adapters_on_layers_that_the_model_does_not_have_are_refused(self, targets: Any) -> None:
        """The message names the layers it has."""
        with pytest.raises(InvalidRequest, match="it has attention, all_linear, q_proj, k_proj") as caught:
            training({"method": "lora", "adapter_targets": targets})
        assert caught.value.pointer == "/training/adapter_targets"

    def test_reinforcement_learning_has_its_own_defaults(self) -> None:
        """One update a sample, a frozen reference, rewards by rule: all noted."""
        notes = AssumptionLog()
        found = training({"method": "rl"}, notes=notes)
        assert (found.update_epochs, found.auxiliary_models) == (1, AuxiliaryModels(reference=True))
        assert noted(notes).items() >= {
            "training.update_epochs": 1, "training.reference_model": True, "training.reward_model": None,
        }.items()  # fmt: skip

    def test_an_encoder_and_decoder_samples_what_fills_its_sequence(self) -> None:
        """Its sampler is not modelled apart; answers longer than the sequence are not silently cut."""
        assert training({"method": "rl", "seq_len": 512}, T5).response_tokens == 512
        assert pointer_of(lambda: training({"method": "rl", "seq_len": 512, "response_tokens": 513}, T5)) == "/training/response_tokens"
        assert pointer_of(lambda: training({"method": "rl", "rl": {}}, T5)) == "/training/rl"

    @pytest.mark.parametrize(
        ("name", "value", "method"),
        [
            ("teacher", {"preset": "llama-2-70b"}, "pretrain"),
            ("cached_logits", True, "rl"),
            ("reward_model", {"preset": "llama-2-7b"}, "dpo"),
            ("reference_model", True, "distill"),
            ("lora_rank", 8, "full_finetune"),
            ("adapter_targets", "attention", "full_finetune"),
            ("update_epochs", 2.0, "dpo"),
            ("response_tokens", 100, "pretrain"),
            ("rl", {}, "dpo"),
        ],
    )
    def test_what_belongs_to_another_method_is_refused(self, name: str, value: Any, method: str) -> None:
        """It is not silently left out; the message names the methods it belongs to."""
        with pytest.raises(InvalidRequest, match=f"{name} belongs to method") as caught:
            training({"method": method, name: value})
        assert caught.value.pointer == f"/training/{name}"


class TestHelpers:
    """Networks that run beside the trained one."""

    def test_a_teacher_is_a_model_like_any_other(self) -> None:
        """Its preset is noted under the teacher's own path."""
        notes = AssumptionLog()
        teacher = training({"method": "distill", "teacher": {"preset": "llama-2-70b"}}, notes=notes).auxiliary_models.teacher
        assert teacher is not None
        assert total_parameters(teacher) == pytest.approx(69e9, rel=0.01)
        assert noted(notes)["training.teacher.preset"] == "llama-2-70b"

    def test_without_a_teacher_its_logits_are_taken_to_be_there(self) -> None:
        """With a warning, because a teacher is expensive; silent where the caller says so."""
        notes = AssumptionLog()
        assert training({"method": "distill"}, notes=notes).auxiliary_models == AuxiliaryModels()
        assert noted(notes)["training.cached_logits"] is True
        assert "training.teacher" in notes.warnings[0]
        stated = AssumptionLog()
        assert training({"method": "distill", "cached_logits": True}, notes=stated).auxiliary_models == AuxiliaryModels()
        assert (stated.warnings, "training.cached_logits" in noted(stated)) == ([], False)

    @pytest.mark.parametrize("given", [{"cached_logits": False}, {"cached_logits": True, "teacher": {"preset": "llama-2-70b"}}])
    def test_a_teacher_and_cached_logits_are_one_or_the_other(self, given: dict[str, Any]) -> None:
        """Neither both nor none."""
        assert pointer_of(lambda: training({"method": "distill", **given})) == "/training/teacher"

    @pytest.mark.parametrize(
        ("method", "name", "model", "pointer"),
        [
            ("distill", "teacher", {"preset": "nobody-70b"}, "/training/teacher/preset"),
            ("distill", "teacher", {}, "/training/teacher"),
            ("distill", "teacher", {"layers": 32}, "/training/teacher/hidden_size"),
            ("rl", "reward_model", {"preset": "nobody-70b"}, "/training/reward_model/preset"),
            ("rl", "reward_model", {"preset": "llama-2-7b", "layers": 3}, "/training/reward_model/layers"),
            ("rl", "reward_model", {"hf_config": {}}, "/training/reward_model/hf_config/num_hidden_layers"),
        ],
    )
    def test_a_bad_helper_points_to_its_own_place(self, method: str, name: str, model: dict[str, Any], pointer: str) -> None:
        """And not to the trained model's."""
        assert pointer_of(lambda: training({"method": method, name: model}), DomainError) == pointer

    def test_a_reference_may_be_left_out(self) -> None:
        """By default DPO and RL run one, a frozen copy of the policy."""
        assert training({"method": "dpo"}).auxiliary_models == AuxiliaryModels(reference=True)
        assert training({"method": "dpo", "reference_model": False}).auxiliary_models == AuxiliaryModels(reference=False)
        reward = {"method": "rl", "reward_model": {"preset": "llama-2-7b"}, "reference_model": False}
        assert training(reward).auxiliary_models == AuxiliaryModels(reward_model=LLAMA)


class TestEfficiency:
    """What the caller measured."""

    @pytest.mark.parametrize("name", ["mfu", "tokens_per_s_per_accelerator", "tflops_per_accelerator"])
    def test_one_figure_is_taken(self, name: str) -> None:
        """Any of the three; none is modelled."""
        assert run_settings.resolve_efficiency({name: 0.4}) == replace(Efficiency(), **{name: 0.4})
        assert not run_settings.resolve_efficiency({}).stated

    def test_two_figures_are_refused(self) -> None:
        """The message names both."""
        with pytest.raises(InvalidRequest, match="mfu and tflops_per_accelerator") as caught:
            run_settings.resolve_efficiency({"mfu": 0.4, "tflops_per_accelerator": 400.0})
        assert caught.value.pointer == "/efficiency"


def test_other_networks_are_what_the_tests_take_them_for() -> None:
    """The presets used above."""
    assert isinstance(RESNET, GenericNetwork)
    assert isinstance(LLAMA, Transformer)
    assert {model.kind for model in (T5, VIT) if isinstance(model, Transformer)} == {"encoder_decoder", "vit"}
