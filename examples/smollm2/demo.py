#!/usr/bin/env python3
"""Run RMSNorm inside a language model, then validate and time it on what the model fed it.

Every step is a command of its own, because a process binds its kernels once. The steps, their
reports and a summary land in the output directory.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ratios import alternating_order, compare
from steps import StepError, Steps
from summary import to_markdown, to_terminal
from terminal import Style

ROOT = Path(__file__).resolve().parents[2]
GENERATE = "examples/smollm2/generate.py"
SOLUTIONS = {"simd": "cpu.simd.rms_norm", "torch": "cpu.torch.rms_norm"}
OVERRIDE = "XLLM_KERNEL_OVERRIDE_RMS_NORM"
SIMD_OPERATOR = "xllm_kernel::simd_rms_norm"
TOKENS = 32
ITERATIONS, REPEATS = 500, 9
TIMED_STRIDE = 15  # all norms of a phase have one shape: five are timed, all are validated
# Waiting threads sleep. Where they spin, as by default, a busy machine runs the model many times
# slower. The timing steps keep the default.
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}


@dataclass(slots=True)
class Demo:
    """Hold what the steps share: where things go, and what was found."""

    steps: Steps
    output: Path
    rounds: int
    revision: str
    failures: list[str] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)

    def run(self) -> None:
        """Run the parts in order; a part raises StepError where nothing can follow it."""
        reports = self.generate_texts()
        self.check_texts(reports)
        self.explain()
        verdicts = [self.validate(name) for name in SOLUTIONS.values()]
        if all(verdicts):
            self.measure()
        else:
            self.failures.append("nothing was timed, because validation failed")

    def generate_texts(self) -> dict[str, dict[str, Any]]:
        """Generate with torch's own norm, capturing its inputs, and with each solution."""
        capture = ["--norm", "torch-functional", "--capture", self.shown(self.inputs)]
        runs = {"reference": ("text with torch.nn.functional.rms_norm", capture)}
        for solution, name in SOLUTIONS.items():
            runs[name] = (f"text with {name}", ["--norm", "bound", "--override", solution])
        reports = {}
        for key, (title, arguments) in runs.items():
            path = self.output / f"text.{key}.json"
            common = [GENERATE, "--tokens", str(TOKENS), "--json", self.shown(path)]
            self.steps.run(title, [*common, *arguments], settings=PATIENT)
            reports[key] = _read_json(path)
        return reports

    def check_texts(self, reports: Mapping[str, Mapping[str, Any]]) -> None:
        """Compare every solution's tokens with the reference run's, and count its norms."""
        reference = reports["reference"]
        solutions = {name: reports[name] for name in SOLUTIONS.values()}
        rows = []
        for index, result in enumerate(reference["results"]):
            others = {name: r["results"][index] for name, r in solutions.items()}
            same = {name: o["tokens"] == result["tokens"] for name, o in others.items()}
            for name in (name for name in same if not same[name]):
                self.failures.append(
                    f"{name} must continue {result['prompt']!r} as {reference['norm']} does, and "
                    "gives another text"
                )
            texts = {name: other["text"] for name, other in others.items()}
            rows.append({k: result[k] for k in ("prompt", "text", "smallest_margin")})
            rows[-1] |= {"same": same, "other": texts}
        wanted = reference["norms_per_forward"]
        counts = {name: r["norm_operators_per_forward"] for name, r in solutions.items()}
        seen = counts[SOLUTIONS["simd"]].get(SIMD_OPERATOR, 0)
        if seen != wanted:
            self.failures.append(
                f"{SIMD_OPERATOR} must be called {wanted} times in a forward pass, got {seen}"
            )
        for name, report in solutions.items():
            if report["norm"] != name:
                self.failures.append(f"{name} was asked for, {report['norm']} was bound")
        self.summary["text"] = {
            "tokens": TOKENS,
            "reference": reference["norm"],
            "norms": list(solutions),
            "norms_per_forward": wanted,
            "operators": counts,
            "prompts": rows,
        }

    def explain(self) -> None:
        """Ask what a worker would be given here, by default and with an override."""
        receipts = {}
        for asked, settings in (("by default", {}), (f"{OVERRIDE}=torch", {OVERRIDE: "torch"})):
            arguments = ["-m", "xllm_kernel", "explain", "rms_norm", "--device", "cpu", "--json"]
            step = self.steps.run(f"receipts {asked}", arguments, settings=settings)
            receipts[asked] = json.loads(step.output)["rms_norm"]
        self.summary["receipts"] = receipts
        chosen = receipts["by default"]["implementation"]
        if chosen != SOLUTIONS["simd"]:
            self.failures.append(f"a worker should be given {SOLUTIONS['simd']}, got {chosen}")

    def validate(self, name: str) -> bool:
        """Validate an implementation on the captured calls; say whether all passed."""
        path = self.output / f"numerics.{name}.json"
        command = self._command("numerics", name, path, self.inputs)
        self.steps.run(f"validate {name}", command, accept=(0, 1), settings=PATIENT)
        report = _read_json(path)
        self.summary.setdefault("validation", []).append(
            {
                "implementation": name,
                "status": report["status"],
                "coverage": report["coverage"],
                "worst": _worst_error(report),
            }
        )
        if report["status"] == "passed":
            return True
        bad = next((row for row in report["rows"] if row["status"] != "passed"), report)
        self.failures.append(
            f"{name} must pass on all captured calls, got {report['coverage']['passed']} of "
            f"{report['coverage']['total']}; first {bad.get('case_id', '')}: {bad['reason']}; "
            f"see {self.shown(path)}"
        )
        return False

    def measure(self) -> None:
        """Time both implementations in alternation and keep a ratio a round."""
        candidate, baseline = SOLUTIONS.values()
        timed = self.output / "timed-inputs"
        timed.mkdir()
        for path in timed_files(self.inputs):
            shutil.copy2(path, timed)
        reports: dict[str, list[Any]] = {candidate: [], baseline: []}
        for name in alternating_order(candidate, baseline, self.rounds):
            turn = len(reports[name]) + 1
            path = self.output / f"benchmark.{name}.{turn}.json"
            command = self._command("benchmark", name, path, timed)
            command += ["--iterations", str(ITERATIONS), "--repeats", str(REPEATS)]
            self.steps.run(f"time {name}, round {turn} of {self.rounds}", command)
            reports[name].append(_read_json(path))
        try:
            phases = compare(reports[candidate], reports[baseline])
        except ValueError as error:
            self.failures.append(f"the timings cannot be compared: {error}")
            return
        self.summary["timing"] = {
            "candidate": candidate,
            "baseline": baseline,
            "rounds": self.rounds,
            "phases": [phase.as_dict() for phase in phases],
        }

    @property
    def inputs(self) -> Path:
        """Directory of the captured norm calls."""
        return self.output / "inputs"

    def _command(self, module: str, implementation: str, path: Path, inputs: Path) -> list[str]:
        command = ["-m", f"xllm_kernel.{module}", "--device", "cpu", "--mode", "eager"]
        command += ["--implementation", implementation, "--inputs", self.shown(inputs)]
        return [*command, "--revision", self.revision, "--output", self.shown(path)]

    def shown(self, path: Path) -> str:
        """Return a path as seen from the repository root, where it lies below it."""
        return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def timed_files(inputs: Path) -> list[Path]:
    """Choose the captured calls to time: evenly over the layers, in both phases."""
    phases: dict[str, list[Path]] = {}
    for path in sorted(inputs.glob("*.safetensors")):
        phases.setdefault(path.name.split(".")[1], []).append(path)
    return [path for paths in phases.values() for path in paths[::TIMED_STRIDE]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = _parse(arguments)
    style, started = Style(), time.monotonic()
    output = options.output.resolve()
    _remove_results(output)
    total = 3 + 2 + len(SOLUTIONS) * (1 + options.rounds)
    print(style.bold("RMSNorm on a CPU, inside SmolLM2-135M"), flush=True)
    demo = Demo(
        steps=Steps(total, ROOT, output / "logs", style),
        output=output,
        rounds=options.rounds,
        revision=_revision(),
    )
    if any(name.startswith("XLLM_KERNEL_OVERRIDE_") for name in os.environ):
        print("XLLM_KERNEL_OVERRIDE_* is set and not passed on: every step names its own kernel")
    try:
        demo.run()
    except StepError as error:
        demo.failures.append(str(error))
    except KeyboardInterrupt:
        print("\ninterrupted; run it again")
        return 130
    summary = _finish(demo, time.monotonic() - started)
    (output / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    (output / "summary.md").write_text(to_markdown(summary), encoding="utf-8")
    print(to_terminal(summary, style))
    print(f"\nReports: {demo.shown(output / 'summary.md')} and the files beside it")
    for reason in demo.failures:
        print(f"{style.verdict(False)} {reason}")
    if not demo.failures:
        print(f"{style.verdict(True)} everything agrees, in {summary['seconds']:.0f} s")
    return 1 if demo.failures else 0


def _remove_results(output: Path) -> None:
    """Remove what an earlier run left, so that an interrupted one shows no old verdict."""
    for kind in ("summary", "text", "numerics", "benchmark"):
        for path in [*output.glob(f"{kind}.*json"), *output.glob(f"{kind}.*md")]:
            path.unlink()
    for name in ("inputs", "timed-inputs", "logs"):
        shutil.rmtree(output / name, ignore_errors=True)


def _finish(demo: Demo, seconds: float) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "status": "failed" if demo.failures else "passed",
        "failures": demo.failures,
        "model": "SmolLM2-135M-Instruct, fp32",
        "machine": f"{_processor()}, {os.cpu_count()} logical CPUs, {platform.system()}",
        "revision": demo.revision,
        "seconds": seconds,
        **demo.summary,
        "commands": [step.command for step in demo.steps.done],
    }


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "build" / "demo",
        metavar="DIR",
        help="where reports go (default: build/demo)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=4,
        metavar="N",
        help="rounds of timing, each with both implementations (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    if options.rounds < 2:
        parser.error("--rounds must be at least 2: one round shows no spread")
    return options


def _worst_error(report: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the largest error of a numerics report, by its share of what is allowed."""
    judged = (row["validation"].get("function") for row in report["rows"] if row.get("validation"))
    outputs = [output for verdict in judged if verdict for output in verdict["outputs"]]
    if not outputs:
        return None
    worst = max(outputs, key=lambda output: output["max_error_ulp"] / output["limit_ulp"])
    return {"ulp": worst["max_error_ulp"], "limit_ulp": worst["limit_ulp"]}


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _revision() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
