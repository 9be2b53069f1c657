"""Named errors where a derivative is wanted of an operator that defines none.

Without them PyTorch would return results that no gradient reaches, and tangents of zero. Knows no
operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xllm_kernel.errors import DomainError


def refusing_kernel(who: str, overload: Any) -> Callable[..., Any]:
    """Return a kernel for PyTorch's key ``Autograd``: it refuses, or hands on below that key.

    It sees what lies nearest to the caller: wrappers of ``torch.func``, dual tensors, fakes.
    ``csrc/fastcall/derivatives.cpp`` is the same, and cheaper, for one exact PyTorch.

    Args:
        who: operation and implementation, for messages.
        overload: the operator.
    """
    import torch
    from torch.autograd import forward_ad

    names = [argument.name for argument in overload._schema.arguments]
    below = torch._C._after_autograd_keyset

    def kernel(keys: Any, *args: Any) -> Any:
        backward = torch.is_grad_enabled() and torch._C._any_requires_grad(*args)
        forward = torch._C._is_fwd_grad_enabled() and forward_ad._current_level >= 0
        if backward or forward:
            with torch._C.DisableTorchFunctionSubclass():
                _check(who, zip(names, args, strict=True))
        return overload.redispatch(keys & below, *args)

    return kernel


def _check(who: str, arguments: Any) -> None:
    import torch
    from torch.autograd import forward_ad

    for name, value in arguments:
        if not isinstance(value, torch.Tensor):
            continue
        if torch.is_grad_enabled() and value.requires_grad:
            raise DomainError(
                f"{who}: {name} must not require a gradient in grad mode, for there is no "
                f"backward; call it under torch.no_grad() (clause {name}.gradient)",
                clause=f"{name}.gradient",
            )
        if torch._C._is_fwd_grad_enabled() and forward_ad.unpack_dual(value).tangent is not None:
            raise DomainError(
                f"{who}: {name} must not carry a tangent, for there is no forward derivative; "
                f"pass the primal alone (clause {name}.tangent)",
                clause=f"{name}.tangent",
            )
