"""Inputs of the NPU tests, and the judge of their outputs. Imports no implementation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from simulator import Simulator

EPS = 1e-5
NAN = float("nan")

SETTLING_S = 30

# Of float32: what one operation may be off by, relative to its result.
_UNIT = 2.0**-24

Pair = tuple[torch.dtype, torch.dtype]


@dataclass(frozen=True)
class Subject:
    """The callable under test.

    Attributes:
        function: takes input, weight and eps.
        dtypes: of input and weight, each pair that it accepts.
        simulator: None on hardware.
    """

    function: Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]
    dtypes: tuple[Pair, ...]
    simulator: Simulator | None

    def launches(self) -> int:
        """Return how many tasks have run on devices; 0 on hardware, where nobody can tell."""
        torch.npu.synchronize()
        return len(self.simulator.schedule()) if self.simulator else 0

    def submitting_threads(self, since: int) -> set[int]:
        """Return which threads submitted the tasks since so many; none on hardware."""
        torch.npu.synchronize()
        tasks = self.simulator.tasks()[since:] if self.simulator else []
        return {task["args"]["thread"] for task in tasks}


def draw(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 1) -> torch.Tensor:
    """Return normal values on the CPU, the same in every run."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def draw_pair(
    shape: tuple[int, ...], pair: Pair, seed: int = 1, device: str = "npu"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an input and a weight on a device, there by the time of return."""
    values = draw(shape, pair[0], seed), draw(shape[-1:], pair[1], seed + 1000)
    return values[0].to(device), values[1].to(device)


def layouts(dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield inputs of several layouts on the NPU, by name; widths are multiples of 64."""
    wide = draw((17, 576), dtype).to("npu")
    yield "contiguous", draw((16, 512), dtype).to("npu")
    yield "columns of a wider buffer", wide[:, :512]
    yield "columns in its middle", wide[3:, 64:128]
    yield "every other row", wide[::2]
    yield "every other column", draw((5, 256), dtype).to("npu")[:, ::2]
    yield "transposed", draw((128, 24), dtype).to("npu").t()
    yield "one row repeated", draw((1, 512), dtype).to("npu").expand(6, 512)
    yield "three dimensions", draw((5, 7, 64), dtype).to("npu")
    yield "three dimensions, permuted", draw((4, 5, 64), dtype).to("npu").permute(1, 0, 2)
    yield "three dimensions, cut", draw((3, 4, 192), dtype).to("npu")[:, 1:, :128]
    yield "four dimensions", draw((2, 3, 4, 128), dtype).to("npu")
    yield "one dimension", draw((64,), dtype).to("npu")


@dataclass(frozen=True)
class MemoryUse:
    """Bytes that tensors have, and that the allocator holds for them."""

    allocated: int
    reserved: int

    @classmethod
    def now(cls, *, emptied: bool = False) -> MemoryUse:
        """Read them once the device is idle; ``emptied`` first gives up what no tensor has."""
        torch.npu.synchronize()
        if emptied:
            torch.npu.empty_cache()
        return cls(torch.npu.memory_allocated(), torch.npu.memory_reserved())

    def assert_no_growth(self, what: str, *, emptied: bool = False) -> None:
        """Compare with what is used now, once all is given back.

        A thread of torch_npu's own gives back what calls held; no synchronisation waits for it.
        """
        deadline = time.monotonic() + SETTLING_S
        while self._exceeded_by(use := self.now(emptied=emptied)):
            assert time.monotonic() < deadline, f"{what}: {use} after {self}"
            time.sleep(0.001)

    def _exceeded_by(self, use: MemoryUse) -> bool:
        return use.allocated > self.allocated or use.reserved > self.reserved


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's bytes on the CPU, for comparisons that know NaN and the zeros' signs."""
    return tensor.cpu().contiguous().view(torch.uint8)


def reference(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return the formula in float64 from the exact inputs, with eps as float32 holds it."""
    exact, eps32 = values.cpu().double(), torch.tensor(eps, dtype=torch.float32).double()
    mean_square = exact.square().mean(-1, keepdim=True)
    return exact / (mean_square + eps32).sqrt() * weight.cpu().double()


def assert_norm(
    output: torch.Tensor, values: torch.Tensor, weight: torch.Tensor, eps: float, what: str = ""
) -> None:
    """Check an output's metadata and values; see ``tolerance`` for what is allowed."""
    assert (output.dtype, output.shape) == (values.dtype, values.shape), what
    assert output.device == values.device, what
    assert output.is_contiguous(), what
    wanted = reference(values, weight, eps)
    error = (output.cpu().double() - wanted).abs()
    wrong = ~(error <= tolerance(wanted, output.dtype))  # a NaN compares false
    assert not bool(wrong.any()), (
        f"{what}: {int(wrong.sum())} of {wrong.numel()} elements are wrong, the first at "
        f"{wrong.nonzero()[0].tolist()}: {output.cpu()[tuple(wrong.nonzero()[0])]} for "
        f"{wanted[tuple(wrong.nonzero()[0])]}"
    )


def tolerance(wanted: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return what a float32 computation that rounds once may be off by.

    The sum of squares has 64 lanes or more, each ``width / 64`` roundings deep, then 6 levels of
    pairs; the root halves its relative error. Four operations follow. A 16-bit output is rounded
    once more, by half of its spacing, or of the subnormals' spacing.
    """
    depth = wanted.shape[-1] / 64 + 6
    relative = _UNIT * (depth / 2 + 4)
    if dtype is torch.float32:
        return wanted.abs() * relative
    limits = torch.finfo(dtype)
    return wanted.abs() * (relative + limits.eps / 2) + limits.smallest_normal * limits.eps / 2
