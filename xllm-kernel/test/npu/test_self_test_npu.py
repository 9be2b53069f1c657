"""The mutation score on the simulated device: what a suite notices there, of all that applies."""

from __future__ import annotations

import json
from pathlib import Path

from processes import Command, run_all, text_of

IMPLEMENTATIONS = ("npu.xllm_native.rms_norm", "npu.xlite.rms_norm")


def test_every_fault_is_killed(tmp_path: Path) -> None:
    reports = {name: tmp_path / f"{name}.json" for name in IMPLEMENTATIONS}
    commands = [
        Command(
            (
                *("-m", "xllm_kernel.numerics", "--self-test", "--operation", "rms_norm"),
                *("--implementation", name, "--device", "npu", "--dtypes", "float16"),
                *("--output", str(report)),
            )
        )
        for name, report in reports.items()
    ]
    for done, report in zip(run_all(commands), reports.values(), strict=True):
        assert done.returncode == 0, text_of(done)
        score = json.loads(report.read_text())
        assert score["killed"] == score["applicable"] >= 60
        assert score["suites"][0]["evidence"] == "simulated"
        assert "simulated" in done.stdout
