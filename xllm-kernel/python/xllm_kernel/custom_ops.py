"""Torch registration at preparation time: schemas, kernels and fakes of package-owned operators.

Registration metadata for selection is ``registry.register_kernel``'s business, not this module's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from xllm_kernel import derivatives, fastcall
from xllm_kernel.errors import ArtifactError, ConfigurationError, DomainError

NAMESPACE = "xllm_kernel"


@dataclass(slots=True)
class _Registered:
    """An operator's retained Torch libraries, and who owns its kernel, fake and refusals.

    Torch drops a registration when its library object dies, hence ``libraries``.
    """

    libraries: list[Any] = field(default_factory=list)
    kernel: str | None = None
    kernel_as: tuple[str, tuple[str, ...]] | None = None  # dispatch key, mutated arguments
    fake: str | None = None
    refuses_as: str | None = None  # the speaker of its errors about derivatives


_registered: dict[str, _Registered] = {}


def register_custom_op(
    name: str,
    function: Callable[..., Any] | None = None,
    *,
    mutates_args: Iterable[str] | None = None,
    dispatch_key: str | None = None,
    fake_impl: Callable[..., Any] | None = None,
    no_derivatives: str | None = None,
) -> Any:
    """Register a Torch operator of this package, or complete one that C++ registered.

    With a function: infers its schema from its annotations, defines ``xllm_kernel::<name>`` and
    registers the function for the dispatch key. Without: resolves the schema that a loaded library
    defined. Either way registers the fake, if any, and the refusal of derivatives. Repeating a
    registration reuses it.

    Args:
        name: operator name inside the package's namespace.
        function: Python kernel, with annotated arguments; None for an existing schema.
        mutates_args: names of the arguments that the kernel writes; required with a function.
        dispatch_key: Torch dispatch key, e.g. ``"CPU"``; required with a function.
        fake_impl: shape-only implementation with the schema's parameters and defaults.
        no_derivatives: operation and implementation, of an operator that defines no derivative: a
            call that wants one raises an error in this name; so does ``torch.vmap`` over an
            operator that writes, for which PyTorch has no rule.

    Returns:
        The operator's default overload.

    Raises:
        ConfigurationError: for an incomplete or contradictory registration, or a fake whose
            parameters differ from the schema's.
        ArtifactError: when no loaded library defines the operator.
    """
    import torch

    who = f"register_custom_op [{NAMESPACE}::{name}]"
    _check_arguments(who, function, mutates_args, dispatch_key)
    state = _registered.get(name, _Registered())
    if function is not None:
        _check_reuse(who, "kernel", state.kernel, function)
        asked = (str(dispatch_key), tuple(mutates_args or ()))
        if state.kernel is None:
            _define(who, name, function, asked[1], asked[0], state)
            state.kernel_as = asked
        elif asked != state.kernel_as:
            raise ConfigurationError(
                f"{who}: its kernel is registered for (dispatch key, mutates_args) "
                f"{state.kernel_as}, got {asked}; an operator has one kernel: repeat it unchanged"
            )
    overload = _resolve(who, name)
    if fake_impl is not None:
        _check_reuse(who, "fake", state.fake, fake_impl)
        if state.fake is None:
            _check_signature(who, overload, fake_impl)
            library = torch.library.Library(NAMESPACE, "FRAGMENT")
            torch.library.register_fake(f"{NAMESPACE}::{name}", fake_impl, lib=library)
            state.libraries.append(library)
            state.fake = _identity(fake_impl)
    if no_derivatives is not None and state.refuses_as is None:
        # A kernel in C++ has its refusal in C++, where that was built: from there a call costs no
        # more than without.
        if function is not None or not fastcall.refuse_derivatives(name, no_derivatives):
            state.libraries.append(_refuse_derivatives(name, overload, no_derivatives))
        written = [a.name for a in overload._schema.arguments if a.alias_info is not None]
        if written:
            state.libraries.append(_refuse_batches(name, written[0], no_derivatives))
        state.refuses_as = no_derivatives
    _registered[name] = state
    return overload


def _check_arguments(
    who: str,
    function: Callable[..., Any] | None,
    mutates_args: Iterable[str] | None,
    dispatch_key: str | None,
) -> None:
    given = {"mutates_args": mutates_args is not None, "dispatch_key": dispatch_key is not None}
    if function is None and any(given.values()):
        names = ", ".join(n for n, present in given.items() if present)
        raise ConfigurationError(
            f"{who}: without a callable the schema comes from C++, so {names} must not be given; "
            "remove it, or pass the callable"
        )
    if function is not None and not inspect.isfunction(function):
        raise ConfigurationError(
            f"{who}: a plain function is needed, its annotations are the schema, got "
            f"{type(function).__name__}; wrap it in a def"
        )
    if function is not None and not all(given.values()):
        names = ", ".join(n for n, present in given.items() if not present)
        raise ConfigurationError(f"{who}: a new Python kernel needs {names} too; pass it")


def _check_reuse(who: str, role: str, earlier: str | None, function: Callable[..., Any]) -> None:
    """Accept the same function again, as a re-imported module passes it; refuse another one."""
    if earlier is not None and earlier != _identity(function):
        raise ConfigurationError(
            f"{who}: its {role} is {earlier}, got another one, {_identity(function)}; an operator "
            "has one owner: choose another name"
        )


def _identity(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _define(
    who: str,
    name: str,
    function: Callable[..., Any],
    mutates_args: tuple[str, ...],
    dispatch_key: str,
    state: _Registered,
) -> None:
    import torch

    if hasattr(getattr(torch.ops, NAMESPACE), name):
        raise ConfigurationError(
            f"{who}: the operator exists already, registered elsewhere; choose another name, or "
            "omit the callable to complete it"
        )
    schema = torch.library.infer_schema(function, mutates_args=mutates_args)
    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    library.define(f"{name}{schema}")
    library.impl(name, function, dispatch_key)
    state.libraries.append(library)
    state.kernel = _identity(function)


def _refuse_derivatives(name: str, overload: Any, who: str) -> Any:
    """Register the refusal and return what keeps it registered."""
    import torch

    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    library.impl(name, derivatives.refusing_kernel(who, overload), "Autograd", with_keyset=True)
    return library


def _refuse_batches(name: str, argument: str, who: str) -> Any:
    """Register the refusal of ``torch.vmap`` and return what keeps it registered."""
    import torch

    def kernel(*_: Any) -> None:
        raise DomainError(
            f"{who}: {argument} must not be written under torch.vmap, which maps only operators "
            f"that write nothing; call the operation with fresh outputs there, or write in a loop "
            f"(clause {argument}.vmap)",
            clause=f"{argument}.vmap",
        )

    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    library.impl(name, kernel, "FuncTorchBatched")
    return library


def _resolve(who: str, name: str) -> Any:
    import torch

    packet = getattr(getattr(torch.ops, NAMESPACE), name, None)
    if packet is None:
        raise ArtifactError(
            f"{who}: a loaded library must define the operator, none does; load the bridge with "
            "torch.ops.load_library first, or rebuild it"
        )
    return packet.default


def _check_signature(who: str, overload: Any, fake_impl: Callable[..., Any]) -> None:
    """Compare a fake's parameters and defaults with the schema's: a drift breaks tracing only."""
    real = [
        (a.name, a.default_value if a.has_default_value() else inspect.Parameter.empty)
        for a in overload._schema.arguments
    ]
    fake = [(p.name, p.default) for p in inspect.signature(fake_impl).parameters.values()]
    if real != fake:
        raise ConfigurationError(
            f"{who}: the fake must take the schema's parameters {_parameters(real)}, got "
            f"{_parameters(fake)}; correct {_identity(fake_impl)}"
        )


def _parameters(parameters: list[tuple[str, Any]]) -> str:
    empty = inspect.Parameter.empty
    return f"({', '.join(n if d is empty else f'{n}={d!r}' for n, d in parameters)})"
