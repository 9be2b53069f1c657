"""Reports of benchmarks that never ran: seeded documents of every kind, for tests of their readers.

Nothing is measured here, and no figure comes from the code that reads or writes reports.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

Document = dict[str, Any]

OURS = "cpu.simd.affine"
BASELINE = "cpu.torch.affine"
PEERS = (
    *(OURS, BASELINE, "peer.inductor.affine", "peer.onnxruntime.affine"),
    *("peer.vllm.affine", "peer.zentorch.affine", "peer.ggml.affine", "peer.numpy.affine"),
)
SHAPES = (
    *((1, 512), (1, 2048), (1, 6144), (16, 512), (16, 2048), (16, 6144)),
    *((128, 512), (128, 2048), (128, 6144), (4096, 512), (4096, 2048), (4096, 6144)),
)
NOTICE = (
    "simulated: ran on a stand-in for the device; it shows calls, their order and lifetimes, "
    "and is no evidence of accuracy or performance"
)
_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
_EXIT = {"passed": 0, "failed": 1, "error": 3, "not_run": None}


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def column(samples: Sequence[float]) -> Document:
    """Return a column of figures over samples, microseconds a call."""
    median = _median(samples)
    deviation = _median([abs(value - median) for value in samples])
    return {
        "median": median,
        "p90": sorted(samples)[math.ceil(0.9 * len(samples)) - 1],
        "minimum": min(samples),
        "median_absolute_deviation": deviation,
        "unstable": deviation > 0.1 * median,
        "samples": list(samples),
    }


def samples(seed: int, median_us: float, count: int = 25, spread: float = 0.01) -> list[float]:
    """Draw times about a median; a few are late, as times are."""
    draw = random.Random(seed)
    return [
        round(median_us * math.exp(draw.gauss(0, spread)) * draw.choice((1,) * 19 + (1.15,)), 6)
        for _ in range(count)
    ]


def ratio(numerator: Sequence[float], denominator: Sequence[float]) -> Document:
    """Return the median of ratios by round, between two order statistics of them."""
    values = sorted(a / b for a, b in zip(numerator, denominator, strict=True))
    reach = 1.96 * math.sqrt(len(values)) / 2
    low = max(0, math.floor(len(values) / 2 - reach))
    high = min(len(values) - 1, math.ceil(len(values) / 2 + reach))
    return {"middle": _median(values), "low": values[low], "high": values[high]}


def figures(taken: Sequence[float], **more: Any) -> Document:
    """Return one regime's figures; ``more`` replaces any of them."""
    return {
        "calls_a_replay": 1,
        "iterations": 40,
        "repeats": len(taken),
        "stopped": "plateau",
        "wall_us": column(taken),
        "empty_callable": {"wall_us": column([0.05, 0.051, 0.05])},
        "rounds": list(range(len(taken))),
        "dropped": {},
        "unstable": [],
        "roofline": None,
        "against": None,
        "noise_floor": None,
        **more,
    }


def roofline(work: Mapping[str, Any], median_us: float, threads: int = 1) -> Document:
    """Return what a machine of 20 GB/s and 100 GFLOP/s a thread would allow."""
    moved = work["read_bytes"] + work["written_bytes"]
    ceilings = {
        "copy": moved / (20e3 * threads),
        "streaming copy": moved / (16e3 * threads),
        "fma": work["operations"] / (100e3 * threads),
    }
    binding = "copy"
    share = ceilings[binding] / median_us
    return {
        "gb_per_s": moved / median_us / 1e3,
        "gflop_per_s": work["operations"] / median_us / 1e3,
        "ceilings_us": ceilings,
        "binding": binding,
        "share": share,
        "impossible": share > 1.05,
    }


def against(
    taken: Sequence[float],
    base: Sequence[float],
    twin: Sequence[float],
    word: str,
    **more: Any,
) -> Document:
    """Return a comparison with a baseline; the verdict is the caller's."""
    noise = ratio(twin, base)
    band = max(abs(noise["low"] - 1), abs(noise["high"] - 1), 0.005)
    return {
        "baseline": BASELINE,
        "threads": 1,
        "ratio": ratio(taken, [(a + b) / 2 for a, b in zip(base, twin, strict=True)]),
        "noise_floor": noise,
        "band": band,
        "verdict": word,
        **more,
    }


def work(dtype: str, rows: int, width: int) -> Document:
    """Return the traffic and operations of a case."""
    size = _BYTES[dtype] * rows * width
    return {
        "read_bytes": size,
        "written_bytes": size,
        "operations": 4 * rows * width,
        "arithmetic": "fma",
        "in_place": False,
    }


def verdict(status: str = "passed", error: float = 0.5) -> Document:
    """Return a validation phase."""
    output = {
        "path": "output",
        "elements": 512,
        "checked_elements": 512,
        "max_error_ulp": error,
        "limit_ulp": 0.75,
        "ratio": 1.0,
        "worst": {
            "index": [0, 143],
            "actual": -0.045,
            "reference": -0.0452,
            "absolute_error": 0.0002,
            "error_ulp": error,
        },
    }
    return {"status": status, "check": None, "reason": None, "outputs": [output]}


def row(
    implementation: str = OURS,
    dtype: str = "bfloat16",
    shape: tuple[int, int] = (16, 512),
    threads: int | None = 1,
    regimes: Mapping[str, Any] | None = None,
    **more: Any,
) -> Document:
    """Return a row that passed; ``more`` replaces any field."""
    rows, width = shape
    phases = ("function", "captured", "after_timing")
    return {
        "operation": "affine",
        "implementation": implementation,
        "case_id": f"affine/{dtype}/{rows}x{width}/seed5309",
        "parameters": {"dtype": dtype, "rows": rows, "width": width, "seed": 5309},
        "evidence": "cpu",
        "status": "passed",
        "stage": None,
        "reason": None,
        "metadata": {"input_strides": [width, 1]},
        "validation": {phase: verdict() for phase in phases},
        "durations": {"validation_s": 0.5, "timing_s": 0.25},
        "traceback": None,
        "crashed": False,
        "stderr": None,
        "rank": None,
        "reproduce": None,
        "threads": threads,
        "work": work(dtype, rows, width),
        "timings": None if regimes is None else {"regimes": dict(regimes)},
        **more,
    }


def ended(status: str, stage: str, reason: str, **more: Any) -> Document:
    """Return a row that did not pass, and so has no figures."""
    failed = status in ("failed", "error")
    again = "python -m xllm_kernel.benchmark --implementation cpu.simd.affine --case affine/x"
    phases = {"function": verdict("failed", 9.5)} if status == "failed" else {}
    fields = {"validation": phases, "reproduce": again if failed else None, **more}
    return row(status=status, stage=stage, reason=reason, **fields)


def document(rows: Sequence[Document], **more: Any) -> Document:
    """Return a whole report around rows; ``more`` replaces any field."""
    states = ("passed", "failed", "error", "not_applicable", "not_run")
    counts = {state: sum(line["status"] == state for line in rows) for state in states}
    status = (
        "error" if counts["error"] else "failed" if counts["failed"] or not counts["passed"] else ""
    )
    status = status or "passed"
    return {
        "schema_version": 2,
        "kind": "benchmark",
        "status": status,
        "reason": None,
        "exit_code": _EXIT[status],
        "operation": "affine",
        "implementation": OURS,
        "device": "cpu",
        "mode": "eager",
        "evidence": "cpu",
        "notice": None,
        "revision": "0a1b2c3d",
        "command": ["python", "-m", "xllm_kernel.benchmark", "--implementation", OURS],
        "started": "2026-01-02T03:04:05+00:00",
        "duration_s": 71.5,
        "settings": {"warmup": None, "threads": [1], "iterations": None, "repeats": None},
        "environment": {
            "xllm_kernel": "0.1.0",
            "python": "3.11.7",
            "platform": "Linux-6.1-x86_64",
            "machine": "x86_64",
            "cpu_count": 2,
            "simulated": False,
            "device_name": "Abacus 9000",
            "torch": "2.13.0",
            "last_level_cache_bytes": 33554432,
            "cpus": [0, 1],
            "governor": "performance",
        },
        "receipt": {
            "operation": "affine",
            "implementation": OURS,
            "solution": "simd",
            "priority": 5,
            "generation": 1,
            "build": ["g++ 12.2, level avx512bf16"],
            "caveats": [],
            "excluded": [
                {"name": "npu.native.affine", "code": "device", "reason": "declared for 'npu'"}
            ],
            "plan_hash": "1c" * 32,
        },
        "ranks": 1,
        "processes": {"isolated": True, "restarts": 0, "deaths": [], "lost": []},
        "coverage": {"total": len(rows), **counts},
        "preparation_s": 0.05,
        "warmup_s": 0.01,
        "capture_s": 0.0,
        "baseline": None,
        "ceilings": {"level": "avx512bf16", "absent": None},
        "other_receipts": {},
        "missing": [],
        "rows": list(rows),
        **more,
    }


def _seed(*facts: object) -> int:
    return random.Random("/".join(map(str, facts))).randrange(2**32)


def single() -> Document:
    """Return a run of one implementation: hot and cold, with a noise floor, without a baseline."""
    rows = []
    for shape in SHAPES[:6]:
        needs = work("bfloat16", *shape)
        moved = needs["read_bytes"] + needs["written_bytes"]
        regimes = {}
        for name, slower in (("hot", 1.0), ("cold", 2.5)):
            taken = samples(_seed(name, shape), (0.3 + moved / 12e3) * slower)
            more = {"rotation_us": column([3.5, 3.6, 3.4])} if name == "cold" else {}
            regimes[name] = figures(
                taken,
                roofline=roofline(needs, _median(taken)),
                noise_floor=ratio(taken[1::2], taken[0:-1:2]),
                **more,
            )
        rows.append(row(shape=shape, regimes=regimes))
    return document(rows)


def pair() -> Document:
    """Return a candidate beside its baseline: all four verdicts, and a row that is unstable."""
    wanted = {"FASTER": 0.5, "SLOWER": 1.25, "SAME": 1.0, "AMBIGUOUS": 0.98, "UNSTABLE": 0.9}
    rows = []
    for shape, (word, factor) in zip(SHAPES, wanted.items(), strict=False):
        needs = work("bfloat16", *shape)
        usual = 0.5 + (needs["read_bytes"] + needs["written_bytes"]) / 8e3
        base, twin = (samples(_seed(who, shape), usual) for who in ("base", "twin"))
        spread = {"AMBIGUOUS": 0.08, "UNSTABLE": 0.3}.get(word, 0.01)
        taken = samples(_seed("ours", shape), usual * factor, spread=spread)
        late = word == "UNSTABLE"
        said = against(taken, base, twin, "AMBIGUOUS" if late else word)
        ours = figures(
            taken,
            against=said,
            roofline=roofline(needs, _median(taken)),
            unstable=["other processes used 0.9 of a processor"] if late else [],
            dropped={"other processes used a processor": 12} if late else {},
        )
        theirs = figures(base, roofline=roofline(needs, _median(base)))
        rows += [
            row(shape=shape, regimes={"hot": ours}),
            row(BASELINE, shape=shape, regimes={"hot": theirs}),
        ]
    return document(rows, baseline=BASELINE)


def peers() -> Document:
    """Return eight implementations, 12 shapes, two dtypes and thread counts; two are not there."""
    rows = []
    speeds = dict(zip(PEERS, (11e3, 5e3, 7e3, 6e3, 8e3, 9e3, 4e3, 2e3), strict=True))
    for dtype in ("bfloat16", "float32"):
        for shape in SHAPES:
            for threads in (1, 2):
                rows += _beside(speeds, dtype, shape, threads)
    missing = [
        {"name": "peer.tvm.affine", "reason": "no distribution of 'apache-tvm' for Python 3.11"},
        {"name": "peer.mkl.affine", "reason": "has no such form | of the operation"},
    ]
    return document(rows, baseline=BASELINE, missing=missing)


def _beside(
    speeds: Mapping[str, float], dtype: str, shape: tuple[int, int], threads: int
) -> list[Document]:
    needs = work(dtype, *shape)
    moved = needs["read_bytes"] + needs["written_bytes"]

    def drawn(who: str, speed: float) -> list[float]:
        return samples(_seed(who, dtype, shape, threads), 0.4 + moved / speed / threads**0.8)

    base, twin = (drawn(who, speeds[BASELINE]) for who in (BASELINE, "twin"))
    lines = []
    for name, speed in speeds.items():
        taken = base if name == BASELINE else drawn(name, speed)
        said = None
        if name != BASELINE:
            word = "FASTER" if speed > speeds[BASELINE] else "SLOWER"
            said = against(taken, base, twin, word, threads=threads)
        given = figures(taken, against=said, roofline=roofline(needs, _median(taken), threads))
        lines.append(row(name, dtype, shape, threads, {"hot": given}))
    return lines


def troubled() -> Document:
    """Return rows that failed, raised, do not apply, died, and one whose figure is impossible."""
    needs = work("bfloat16", 16, 512)
    taken = samples(7, 0.2)
    impossible = figures(taken, roofline=roofline(needs, _median(taken)))
    rows = [
        row(regimes={"hot": impossible}),
        ended("failed", "after_timing", "output: error 9.5 ULP, limit 0.75", shape=(1, 512)),
        ended("error", "capture", "RuntimeError: bad | cell\nsecond line", shape=(1, 2048)),
        ended("not_applicable", "support", "width must be divisible by 64", shape=(1, 63)),
        ended(
            *("error", "timing", "the process died: signal SIGSEGV"),
            shape=(1, 6144),
            crashed=True,
            stderr="Fatal Python error: Segmentation fault",
        ),
    ]
    death = {"rank": 0, "case_id": rows[-1]["case_id"], "stage": "timing", "ending": "SIGSEGV"}
    processes = {"isolated": True, "restarts": 1, "deaths": [death], "lost": []}
    return document(rows, processes=processes, reason="2 of 5 cases raised")


def simulated() -> Document:
    """Return a run over a simulated device: bare samples, no figures."""
    samples = {
        "calls_a_replay": 64,
        "iterations": 3,
        "repeats": 5,
        "wall_us": [901.5, 902.5, 903.5, 904.5, 905.5],
    }
    times = {"notice": NOTICE, "regimes": {"graph": samples}}
    rows = [
        row("npu.native.affine", shape=shape, evidence="simulated", simulated_timings=times)
        for shape in SHAPES[:3]
    ]
    good = document(rows)
    facts = {"simulated": True, "simulator": "0.1", "simulator_seed": "1"}
    named = {"implementation": "npu.native.affine", "device": "npu", "mode": "aclgraph"}
    environment = good["environment"] | facts
    return good | named | {"evidence": "simulated", "notice": NOTICE, "environment": environment}


def partial() -> Document:
    """Return what a killed run left: two rows have figures, the others wait."""
    done = single()["rows"][:2]
    waiting = [
        row(shape=shape, status="not_run", evidence=None, validation={}, durations={})
        for shape in SHAPES[2:6]
    ]
    return document([*done, *waiting], status="not_run", exit_code=None, preparation_s=None)


def many(count: int = 100_000) -> Document:
    """Return a row of very many samples beside one of few."""
    needs = work("bfloat16", 1, 512)
    taken = samples(3, 1.0, count, 0.02)
    large = figures(taken, stopped="exact", roofline=roofline(needs, _median(taken)))
    large["dropped"] = {"taken off its processor": 321}
    few = figures(samples(4, 2.0))
    return document(
        [row(shape=(1, 512), regimes={"hot": large}), row(shape=(1, 2048), regimes={"hot": few})]
    )


HOSTILE = '</script><img src=x onerror="window.hurt=1">\'"&<b>|`*[x](javascript:alert(1))'


def hostile() -> Document:
    """Return a report whose every free text tries to become markup or code."""
    bad = ended("failed", HOSTILE, HOSTILE, shape=(1, 512), reproduce=HOSTILE)
    good = pair()
    for line in good["rows"]:
        line["case_id"] += HOSTILE
        line["parameters"]["dtype"] = HOSTILE
        if line["implementation"] != BASELINE:
            line["implementation"] += HOSTILE
            line["timings"]["regimes"]["hot"]["unstable"] = [HOSTILE]
            line["timings"]["regimes"]["hot"]["dropped"] = {HOSTILE: 1}
    bad["case_id"] = HOSTILE
    told = {"name": HOSTILE, "reason": HOSTILE}
    good["receipt"]["excluded"].append({**told, "code": HOSTILE})
    good["receipt"]["caveats"] = [HOSTILE]
    good["receipt"]["build"].append(HOSTILE)
    good["environment"][HOSTILE] = HOSTILE
    return document(
        [*good["rows"], bad],
        baseline=BASELINE,
        missing=[told],
        receipt=good["receipt"],
        environment=good["environment"],
        command=[HOSTILE],
        revision=HOSTILE,
        implementation=OURS + HOSTILE,
    )


ALL = {
    each.__name__: each
    for each in (single, pair, peers, troubled, simulated, partial, many, hostile)
}
"""Builders of every kind of document, by name."""
