"""What a planted fault is: a good callable made wrong in one way, to see whether a suite notices.

Where a fault applies is read off what is declared, never off what comes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.compare import flatten, map_tensors
from xllm_kernel.numerics.storage import is_tensor
from xllm_kernel.registry import KernelFunction, OpContract

if TYPE_CHECKING:
    import torch

    from xllm_kernel.numerics.bound import Expectation
    from xllm_kernel.numerics.compare import Expected


@dataclass(frozen=True, slots=True)
class Site:
    """Where a fault is planted, as declared.

    Attributes:
        contract: the operation's.
        names: its arguments, in the order of the call.
        tensors: those of them that are tensors.
        returns: how many tensors a call returns.
        device: device type.
        mode: execution mode.
        guarantees: what the implementation promises beyond the contract.
        expect: returns what must come of arguments on the CPU.
    """

    contract: OpContract
    names: tuple[str, ...]
    tensors: tuple[str, ...]
    returns: int
    device: str
    mode: str
    guarantees: tuple[str, ...]
    expect: Callable[[dict[str, Any]], Expectation]

    def outputs(self, result: object, arguments: tuple[Any, ...]) -> list[torch.Tensor]:
        """Return the tensors that a call returned and those that it may write."""
        written = [a for n, a in zip(self.names, arguments, strict=True) if self.writes(n)]
        return [leaf for _, leaf in flatten(result) if is_tensor(leaf)] + written

    def wanted(self, arguments: tuple[Any, ...]) -> list[Expected]:
        """Return what each of the outputs must be, for arguments as they are before the call."""
        named = zip(self.names, arguments, strict=True)
        given = {n: a.cpu().clone() if n in self.tensors else a for n, a in named}
        expectation = self.expect(given)
        returned = [] if expectation.returned is None else flatten(expectation.returned)
        written = [expectation.written[name] for name in self.names if self.writes(name)]
        return [leaf for _, leaf in returned] + written

    def writes(self, name: str) -> bool:
        """Say whether the contract lets calls write an argument."""
        return name in self.contract.mutates

    def only_read(self, arguments: tuple[Any, ...]) -> list[torch.Tensor]:
        """Return the tensors that the contract keeps calls from writing."""
        pairs = zip(self.names, arguments, strict=True)
        return [a for n, a in pairs if n in self.tensors and not self.writes(n)]


Plant = Callable[[KernelFunction, Site], KernelFunction]
Reason = Callable[[Site], "str | None"]


def _always(site: Site) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to be wrong.

    Attributes:
        name: as tables show it.
        text: what the callable does, for people.
        plant: makes the faulty callable of a good one.
        inapplicable: returns why an implementation cannot have it, by its declaration, or None.
        fatal: whether it may end the process, and is tried in one of its own.
        raises: whether to raise is its way to be wrong; another that raises is a mistake in here,
            and not noticed by anybody.
        guarantee: the guarantee that it breaks, where it keeps to the contract; None elsewhere.
    """

    name: str
    text: str
    plant: Plant
    inapplicable: Reason = _always
    fatal: bool = False
    raises: bool = False
    guarantee: str | None = None


def on_outputs(damage: Callable[[torch.Tensor], object]) -> Plant:
    """Damage every output in place once it is computed."""

    def plant(function: KernelFunction, site: Site) -> KernelFunction:
        def faulty(*arguments: Any) -> Any:
            result = function(*arguments)
            for tensor in site.outputs(result, arguments):
                if tensor.numel() == 0:
                    continue
                # A device may lack the operators that damage takes.
                host = tensor if tensor.device.type == "cpu" else tensor.cpu()
                damage(host)
                tensor.copy_(host)
            return result

        return faulty

    return plant


def on_result(change: Callable[[torch.Tensor], Any]) -> Plant:
    """Return something else instead of each tensor that is returned."""

    def plant(function: KernelFunction, site: Site) -> KernelFunction:
        def faulty(*arguments: Any) -> Any:
            return map_tensors(function(*arguments), change)

        return faulty

    return plant


def returning(site: Site) -> str | None:
    """Refuse operations that return nothing."""
    return None if site.returns else "the operation returns no tensor"


def writing(site: Site) -> str | None:
    """Refuse operations that write no argument."""
    return None if site.contract.mutates else "the operation writes no argument"


def promising(guarantee: str) -> Reason:
    """Refuse implementations that do not promise a guarantee."""
    return lambda site: None if guarantee in site.guarantees else f"{guarantee} is not promised"
