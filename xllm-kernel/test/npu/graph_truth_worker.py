"""A program that puts wrong graphs through the numerics' steps, each in a process of its own.

The processes are forked before anything touches a device: what a fault does to it, or leaves
unfinished there, stays with the fault. Prints a JSON object: by fault, the case's row and the
kinds of what the simulator reported.
"""

from __future__ import annotations

import json
import os
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import affine
import affine.suite
import torch
import torch_npu  # noqa: F401
from simulator import find_simulator

from xllm_kernel.numerics.case_run import CaseEndedError, CaseRun
from xllm_kernel.numerics.report import Row
from xllm_kernel.platforms.captured import Captured
from xllm_kernel.platforms.npu import CALLS_A_GRAPH, NpuPlatform
from xllm_kernel.registry import KernelSpec, PreparedKernel

SIZE, SCALE = 512, 3.0
Behaviour = Callable[[torch.Tensor, float], Any]


def _run(behaviour: Behaviour, platform: NpuPlatform | None = None) -> Row:
    spec = KernelSpec(
        "npu.planted.affine", affine.CONTRACT, "npu", ("eager", "aclgraph"), "any", "planted"
    )
    plan = PreparedKernel(spec, behaviour, 1, ())
    case = affine.suite.Case("affine", {}, SIZE, SCALE)
    row = Row(case.case_id, case.parameters)
    with suppress(CaseEndedError):
        CaseRun(platform or NpuPlatform(), plan, "aclgraph", 1, None).run(case, row)
    return row


def _result(scaled: torch.Tensor) -> dict[str, Any]:
    return {"scaled": scaled, "parts": (-scaled,)}


def _input_frozen() -> Behaviour:
    seen: list[torch.Tensor] = []

    def behaviour(values: torch.Tensor, scale: float) -> Any:
        if not torch.npu.is_current_stream_capturing():
            seen[:] = [values.clone()]
            return affine.honest(values, scale)
        return affine.honest(seen[0], scale)

    return behaviour


def _outputs_shared() -> Behaviour:
    memory = [torch.empty(SIZE, device="npu") for _ in range(CALLS_A_GRAPH)]
    calls = [0]

    def behaviour(values: torch.Tensor, scale: float) -> Any:
        if not torch.npu.is_current_stream_capturing():
            return affine.honest(values, scale)
        output = memory[calls[0] % CALLS_A_GRAPH]
        calls[0] += 1
        return _result(torch.mul(values, scale, out=output))

    return behaviour


class _OneBuffer:
    """Has one buffer, made for the arguments that came last; graphs keep where the others were."""

    def __init__(self, use: Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]) -> None:
        self._use, self._key = use, 0
        self._buffer: torch.Tensor | None = None

    def __call__(self, values: torch.Tensor, scale: float) -> Any:
        if self._key != values.data_ptr():
            self._key = values.data_ptr()
            # As a worker does at its first call, on its own stream.
            with torch.npu.stream(torch.npu.default_stream()):
                self._buffer = torch.full((SIZE,), scale, device="npu")
            torch.npu.synchronize()
        return _result(self._use(self._buffer, values, scale))


def _reads(buffer: torch.Tensor, values: torch.Tensor, scale: float) -> torch.Tensor:
    return values * buffer


def _writes(buffer: torch.Tensor, values: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.mul(values, scale, out=buffer) * 1.0


def _buffer_dies_with_an_object() -> Behaviour:
    buffers: dict[int, torch.Tensor] = {}

    def behaviour(values: torch.Tensor, scale: float) -> Any:
        if id(values) not in buffers:
            buffers[id(values)] = torch.full_like(values, scale)
            weakref.finalize(values, buffers.pop, id(values))
        return _result(values * buffers[id(values)])

    return behaviour


class _OwnStream(NpuPlatform):
    """Replays on a stream of its own, whichever is the current one."""

    def capture(self, function: Callable[[], Any], mode: str, **options: Any) -> Captured:
        captured, own = super().capture(function, mode, **options), torch.npu.Stream()

        def replay() -> None:
            with torch.npu.stream(own):
                captured.replay()

        return replace(captured, replay=replay)


FAULTS: dict[str, Callable[[], Row]] = {
    "none": lambda: _run(affine.honest),
    "input frozen": lambda: _run(_input_frozen()),
    "outputs shared": lambda: _run(_outputs_shared()),
    "buffer read after it was freed": lambda: _run(_OneBuffer(_reads)),
    "buffer written after it was freed": lambda: _run(_OneBuffer(_writes)),
    "buffer dies with an object": lambda: _run(_buffer_dies_with_an_object()),
    "stream of its own": lambda: _run(affine.honest, _OwnStream()),
}


def _forked(fault: Callable[[], Row]) -> Any:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        NpuPlatform().require()
        row = fault()
        with suppress(RuntimeError):
            torch.npu.synchronize()
        kinds = sorted({report["kind"] for report in find_simulator().take_reports()})
        seen = {
            "status": row.status,
            "stage": row.stage,
            "reason": row.reason,
            "validation": {name: verdict["status"] for name, verdict in row.validation.items()},
            "metadata": dict(row.metadata),
            "reports": kinds,
        }
        with os.fdopen(writer, "w") as stream:
            json.dump(seen, stream, default=str)
        os._exit(0)  # whatever a fault has broken must not disturb the exit
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


if __name__ == "__main__":
    print(json.dumps({name: _forked(fault) for name, fault in FAULTS.items()}))
