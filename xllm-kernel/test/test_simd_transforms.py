"""Every operator of cpu.simd in what PyTorch does to operators: right results or named errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from conftest import need_native
from simd_family import ALL, Form, case, same_bits

import xllm_kernel
from xllm_kernel.errors import DomainError
from xllm_kernel.registry import KernelRegistry

need_native()

Given = dict[str, Any]
_EACH_TENSOR = [(form, name) for form in ALL for name in ALL[form].arguments[:-1]]
each_tensor = pytest.mark.parametrize(("operation", "name"), _EACH_TENSOR)


@pytest.fixture(params=ALL)
def form(request: pytest.FixtureRequest) -> Form:
    return ALL[request.param]


@pytest.fixture
def ops(fresh: KernelRegistry) -> dict[str, Callable[..., Any]]:
    """What a model holds."""
    chosen = {operation: form.name for operation, form in ALL.items()}
    plans = xllm_kernel.initialize(device="cpu", overrides=chosen)
    return {name: plan.function for name, plan in plans.items()}


@pytest.fixture
def compile_anew() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _given(form: Form, rows: int = 6) -> Given:
    return form.pick(case((rows, 40)))


def _results(form: Form, op: Callable[..., Any], given: Given) -> list[torch.Tensor]:
    """Call and return every tensor that the call made or wrote."""
    made = op(**given)
    returned = [made] if isinstance(made, torch.Tensor) else list(made or ())
    return [*returned, *(given[name] for name in form.writes)]


def _map(given: Given, change: Callable[[torch.Tensor], Any]) -> Given:
    return {k: change(v) if isinstance(v, torch.Tensor) else v for k, v in given.items()}


def _same(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return all(same_bits(a, b) for a, b in zip(some, others, strict=True))


# ---------------------------------------------------------------- derivatives

Differentiate = Callable[[Callable[[torch.Tensor], torch.Tensor], torch.Tensor], Any]


def _dual(function: Callable[[torch.Tensor], torch.Tensor], at: torch.Tensor) -> Any:
    with forward_ad.dual_level():
        return function(forward_ad.make_dual(at, torch.ones_like(at)))


def _dual_without_gradients(function: Callable[..., torch.Tensor], at: torch.Tensor) -> Any:
    with torch.no_grad():
        return _dual(function, at)


DERIVATIVES: dict[str, tuple[str, Differentiate]] = {
    "grad": ("gradient", lambda f, at: torch.func.grad(f)(at)),
    "vjp": ("gradient", lambda f, at: torch.func.vjp(f, at)),
    "jacrev": ("gradient", lambda f, at: torch.func.jacrev(f)(at)),
    "hessian": ("gradient", lambda f, at: torch.func.hessian(f)(at)),
    "vmap of grad": ("gradient", lambda f, at: torch.vmap(torch.func.grad(f))(at[None])),
    "backward": ("gradient", lambda f, at: f(at.clone().requires_grad_()).backward()),
    "jvp": ("tangent", lambda f, at: torch.func.jvp(f, (at,), (at,))),
    "jacfwd": ("tangent", lambda f, at: torch.func.jacfwd(f)(at)),
    "dual": ("tangent", _dual),
    "dual, no grad": ("tangent", _dual_without_gradients),
}


@pytest.mark.parametrize("kind", DERIVATIVES)
@each_tensor
def test_derivative_wanted_refused_by_name_and_nothing_written(
    ops: dict[str, Callable[..., Any]], operation: str, name: str, kind: str
) -> None:
    form = ALL[operation]
    given = _given(form)
    before = _map(given, torch.clone)

    def run(value: torch.Tensor) -> torch.Tensor:
        return _results(form, ops[operation], given | {name: value * 1})[0].sum()

    clause, differentiate = DERIVATIVES[kind]
    with pytest.raises(RuntimeError) as caught:
        differentiate(run, given[name])
    must = {"gradient": "require a gradient in grad mode", "tangent": "carry a tangent"}[clause]
    message = str(caught.value)
    assert message.startswith(f"{operation} [{form.name}]: {name} must not {must}, for there is no")
    assert message.endswith(f"(clause {name}.{clause})")
    assert _same(list(before.values())[:-1], list(given.values())[:-1])


def _next_to_it(function: Callable[[torch.Tensor], torch.Tensor], at: torch.Tensor) -> Any:
    with forward_ad.dual_level():
        forward_ad.make_dual(at, at)
        return function(at)


NOT_WANTED: dict[str, Differentiate] = {
    "grad of something else": lambda f, at: torch.func.grad(lambda a: a.sum() * f(at))(at),
    "grad of what was detached": lambda f, at: torch.func.grad(lambda a: a.sum() * f(a.detach()))(
        at
    ),
    "jvp of something else": lambda f, at: torch.func.jvp(lambda a: a + f(at), (at,), (at,)),
    "dual level next to it": _next_to_it,
    "no grad": lambda f, at: torch.no_grad()(f)(at.clone().requires_grad_()),
    "inference mode": lambda f, at: torch.inference_mode()(f)(at.clone().requires_grad_()),
}


@pytest.mark.parametrize("kind", NOT_WANTED)
def test_derivative_of_something_else_is_none_of_ours(
    ops: dict[str, Callable[..., Any]], form: Form, kind: str
) -> None:
    wanted = _results(form, ops[form.operation], _given(form))
    got: list[list[Any]] = []

    def run(weight: torch.Tensor) -> torch.Tensor:
        results = _results(form, ops[form.operation], _given(form) | {"weight": weight})
        got.append([result.tolist() for result in results])
        return results[0].sum()

    NOT_WANTED[kind](run, _given(form)["weight"])
    assert got == [[result.tolist() for result in wanted]]


def test_derivatives_refused_without_the_builtins_too(run_python: Callable[..., Any]) -> None:
    code = (
        "import sys; sys.modules['xllm_kernel._build.fastcall'] = None\n"
        "import torch, xllm_kernel\n"
        "op = xllm_kernel.initialize(device='cpu')['rms_norm'].function\n"
        "assert type(op).__name__ == 'OpOverload'\n"
        "x, w = torch.ones(2, 8), torch.ones(8)\n"
        "def wanted(call):\n"
        "    try: call()\n"
        "    except RuntimeError as error: print(error)\n"
        "wanted(lambda: torch.func.grad(lambda a: op(a, w, 1e-6).sum())(x))\n"
        "wanted(lambda: torch.func.jvp(lambda a: op(x, a, 1e-6), (w,), (w,)))\n"
        "print(op(x, w, 0.0).sum().item())\n"
    )
    done = run_python("-c", code)
    gradient, tangent, result = done.stdout.splitlines()
    who = "rms_norm [cpu.simd.rms_norm]: "
    assert gradient.startswith(f"{who}input must not require a gradient in grad mode, for ")
    assert tangent.startswith(f"{who}weight must not carry a tangent, for there is no ")
    assert float(result) == 16.0


# ---------------------------------------------------------------- modes, subclasses, other tensors

CONTEXTS: dict[str, Callable[[], Any]] = {
    "no grad": torch.no_grad,
    "inference mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "default device": lambda: torch.device("cpu"),
    "python dispatcher": lambda: torch._dispatch.python.enable_python_dispatcher(),
}


@pytest.mark.parametrize("context", CONTEXTS)
def test_in_a_context_the_same_bits(
    ops: dict[str, Callable[..., Any]], form: Form, context: str
) -> None:
    op = ops[form.operation]
    wanted = _results(form, op, _given(form))
    given = _given(form)
    with CONTEXTS[context]():
        assert _same(_results(form, op, given), wanted)


class PlainSubclass(torch.Tensor):
    pass


class Recorder(torch.Tensor):
    """A subclass that answers for every function."""

    seen: list[object] = []  # noqa: RUF012 (emptied by the test)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.seen.append(function)
        return super().__torch_function__(function, types, args, kwargs or {})


@pytest.mark.parametrize("kind", [PlainSubclass, Recorder])
@each_tensor
def test_subclass_gets_the_same_bits_and_is_kept(
    ops: dict[str, Callable[..., Any]], operation: str, name: str, kind: type[torch.Tensor]
) -> None:
    form = ALL[operation]
    wanted = _results(form, ops[operation], _given(form))
    given = _given(form)
    given[name] = given[name].as_subclass(kind)
    Recorder.seen.clear()
    got = _results(form, ops[operation], given)
    if kind is Recorder:  # asked once, about the operator, and about nothing else
        assert Recorder.seen == [getattr(torch.ops.xllm_kernel, f"simd_{operation}").default]
    made = got[: len(got) - len(form.writes)]
    assert all(type(tensor) is kind for tensor in made)
    assert _same([tensor.as_subclass(torch.Tensor) for tensor in got], wanted)


def test_meta_tensors_the_named_error(ops: dict[str, Callable[..., Any]], form: Form) -> None:
    given = _map(_given(form), lambda tensor: tensor.to("meta"))
    wanted = rf"^{form.operation} \[{form.name}\]: input must be on device cpu, got meta \(clause "
    with pytest.raises(RuntimeError, match=wanted):
        ops[form.operation](**given)


# ---------------------------------------------------------------- transforms without derivatives


def test_vmap_row_by_row_or_refused_by_name_where_it_would_write(
    ops: dict[str, Callable[..., Any]], form: Form
) -> None:
    op, given = ops[form.operation], _given(form)
    mapped = [name for name in form.arguments[:-1] if name != "weight"]
    before = _map(given, torch.clone)

    def row(*values: torch.Tensor) -> Any:
        return op(**(given | dict(zip(mapped, values, strict=True))))

    if form.writes:
        wanted = rf"\[cpu.simd.{form.operation}\]: {form.writes[0]} must not be written under"
        with pytest.raises(DomainError, match=wanted):
            torch.vmap(row)(*(given[name] for name in mapped))
        assert _same([given[n] for n in form.writes], [before[n] for n in form.writes])
        return
    made = torch.vmap(row)(*(given[name] for name in mapped))
    made = [made] if isinstance(made, torch.Tensor) else list(made)
    assert _same(made, _results(form, op, given))


@pytest.mark.usefixtures("compile_anew")
@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_whole_the_same_bits(
    ops: dict[str, Callable[..., Any]], form: Form, dynamic: bool, backend: str
) -> None:
    op = ops[form.operation]

    def step(**given: Any) -> Any:
        return op(**given)

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic, backend=backend)
    for rows in (6, 9):
        wanted = _results(form, op, _given(form, rows))
        assert _same(_results(form, compiled, _given(form, rows)), wanted)


@pytest.mark.usefixtures("compile_anew")
def test_compiled_where_a_gradient_is_needed_refused_by_name(
    ops: dict[str, Callable[..., Any]], form: Form
) -> None:
    op, given = ops[form.operation], _given(form)
    given["weight"].requires_grad_()
    compiled = torch.compile(lambda: op(**given), fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match=rf"{form.name}\]: weight must not require a gradient"):
        compiled()
    with torch.no_grad():
        compiled()


@pytest.mark.usefixtures("compile_anew")
@pytest.mark.parametrize("strict", [True, False])
def test_exported_the_operator_in_its_graph(
    ops: dict[str, Callable[..., Any]], form: Form, strict: bool
) -> None:
    op = ops[form.operation]

    class Model(torch.nn.Module):
        def forward(self, *values: Any) -> Any:
            return op(*values)

    program = torch.export.export(Model(), tuple(_given(form).values()), strict=strict)
    overload = getattr(torch.ops.xllm_kernel, f"simd_{form.operation}").default
    assert overload in {node.target for node in program.graph.nodes}
    run = program.module()
    got = _results(form, lambda **given: run(*given.values()), _given(form))
    assert _same(got, _results(form, op, _given(form)))
