"""Every planted fault of one implementation, as other projects' tests would see it.

Takes the same cases as the self-test, and its verdicts for our own row; knows no operator.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from peer_rules import RULES, Pair, Rule, Seen
from xllm_kernel.errors import RAISED
from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.bound import Expectation
from xllm_kernel.numerics.compare import Expected, flatten
from xllm_kernel.numerics.faults import faults
from xllm_kernel.numerics.memory import write
from xllm_kernel.numerics.planted import conduct as planted_conduct
from xllm_kernel.numerics.planted import results as planted_results
from xllm_kernel.numerics.planted.fault import Fault
from xllm_kernel.numerics.planted.run import FaultRun
from xllm_kernel.numerics.storage import is_tensor, overlap
from xllm_kernel.registry import KernelFunction

OURS = "xllm-kernel"

CLASSES = ("values", "nonfinite", "form", "memory", "conduct")
"""What a fault is wrong in; a rule that compares values can see the first three."""

_NONFINITE = frozenset(
    {
        "nonfinite_dropped",
        "nan_spread",
        "infinity_saturated",
        "other_nan",
        "subnormals_flushed",
        "nonfinite_input_skipped",
        "subnormal_inputs_flushed",
    }
)
_OTHERS = {
    "form": planted_results.FORM,
    "memory": planted_conduct.MEMORY,
    "conduct": (
        *planted_conduct.MEMORY_OF_CALLS,
        *planted_conduct.ENDING,
        *planted_conduct.DEPENDENCE,
    ),
}

# Of room on each side of an argument: less than a device's allocator leaves between blocks, so that
# a stray write hits nothing.
_ROOM = 256


def class_of(fault: Fault) -> str:
    """Return what a fault is wrong in, one of ``CLASSES``."""
    if fault.name in _NONFINITE:
        return "nonfinite"
    found = (name for name, group in _OTHERS.items() if fault in group)
    return next(found, "values")


@dataclass(frozen=True, slots=True)
class _Data:
    """Arguments of one call and what must come of them, in the outputs' dtypes."""

    arguments: Mapping[str, Any]
    expectation: Expectation


class PeerRun(FaultRun):
    """The faults of one request's suite before every rule."""

    def __init__(self, request: Request, only: tuple[str, ...] | None = None) -> None:
        """Prepare cases, and find out which of them each rule can judge; arguments as FaultRun."""
        super().__init__(request, only)
        most = max(rule.data_sets for rule in RULES)
        self._data = [[self._make(case.first, n) for n in range(most)] for case in self._cases]
        # Memory of the calls since a fault was planted: none is used for other data meanwhile, so
        # that what an allocator does decides nothing.
        self._held: list[_Placed] = []
        honest = self._switch.honest
        self._usable: dict[str, list[int]] = {rule.name: [] for rule in RULES}
        for rules in _by_procedure():
            for index in range(len(self._cases)):
                for rule, accepted in self._verdicts(honest, index, rules):
                    if accepted:
                        self._usable[rule.name].append(index)

    def results(self) -> dict[str, Any]:
        """Return the self-test's results, and under ``let_through`` each rule's faults by name.

        ``judged`` says how many cases each rule accepts without any fault; it judges no others.
        """
        found = super().results()
        status = {
            line["fault"]: line["status"]
            for line in found["faults"]
            if line["status"] != "not_applicable"
        }
        every = [fault for fault in faults(self._request.suite) if fault.name in status]
        through: dict[str, list[str]] = {rule.name: [] for rule in RULES}
        through[OURS] = [f.name for f in every if status[f.name] == "survived"]
        for fault in every:
            for name in self._peers_alone(fault) if fault.fatal else self._peers(fault):
                through[name].append(fault.name)
        return {
            "implementation": self._request.implementation,
            "cases": found["cases"],
            "honest_failure": found["honest_failure"],
            "judged": {name: len(cases) for name, cases in self._usable.items()},
            "classes": {fault.name: class_of(fault) for fault in every},
            "let_through": through,
        }

    def _make(self, prepared: Any, number: int) -> _Data:
        prepared.refresh(number)
        given = {n: _Placed(a).tensor if is_tensor(a) else a for n, a in prepared.arguments.items()}
        device = next(a.device for a in given.values() if is_tensor(a))
        return _Data(given, prepared.expect(given, device))

    def _peers(self, fault: Fault) -> list[str]:
        """Return the names of the rules that let a fault through."""
        return [rule.name for rules in _by_procedure() for rule in self._blind(fault, rules)]

    def _blind(self, fault: Fault, rules: Sequence[Rule]) -> list[Rule]:
        """Return those of some rules, which try alike, that accept a fault in all cases."""
        planted = fault.plant(self._switch.honest, self._site)
        self._held.clear()
        left = list(rules)
        for index in range(len(self._cases)):
            here = [rule for rule in left if index in self._usable[rule.name]]
            refused = [r for r, good in self._verdicts(planted, index, here) if not good]
            left = [rule for rule in left if rule not in refused]
            if not left:
                break
        return left

    def _peers_alone(self, fault: Fault) -> list[str]:
        """Try a fault in a child; one that ends the process counts as noticed by everybody."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.write(writer, json.dumps(self._peers(fault)).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        names: list[str] = json.loads(answer) if answer else []
        return names

    def _verdicts(
        self, function: KernelFunction, index: int, rules: Sequence[Rule]
    ) -> Iterator[tuple[Rule, bool]]:
        """Call a function as some rules' tests do, and yield what each says of one case."""
        if not rules:
            return
        good = dict.fromkeys((rule.name for rule in rules), True)
        for data in self._data[index][: rules[0].data_sets]:
            placed = {n: _Placed(a) for n, a in data.arguments.items() if is_tensor(a)}
            self._held.extend(placed.values())
            calls = [_call(function, data, placed) for _ in range(rules[0].calls)]
            seen = [call for call in calls if call is not None]
            complete = len(seen) == len(calls)
            for rule in rules:
                good[rule.name] &= complete and rule.covers(seen) and rule.accepts(seen)
        yield from ((rule, good[rule.name]) for rule in rules)


class _Placed:
    """Memory for an argument, laid out as the case's, with room on both sides."""

    def __init__(self, given: torch.Tensor) -> None:
        strides = given.stride()
        reach = sum((e - 1) * s for e, s in zip(given.shape, strides, strict=True)) + 1
        span = reach if given.numel() else 0
        self._block = given.new_zeros(span + 2 * _ROOM)
        self.tensor = self._block.as_strided(given.shape, strides, _ROOM)
        self._behind = self._block[_ROOM + span :]
        self.refill(given)

    def refill(self, given: torch.Tensor) -> None:
        """Put data there, and nothing around them."""
        self._block.zero_()
        write(self.tensor, given)

    @property
    def behind_changed(self) -> bool:
        """Whether something was written behind the end."""
        return bool(self._behind.any())


def _call(function: KernelFunction, data: _Data, placed: Mapping[str, _Placed]) -> Seen | None:
    """Call a function as if for the first time; None where nothing comes of it to compare."""
    for name, place in placed.items():
        place.refill(data.arguments[name])
    given = {n: placed[n].tensor if n in placed else a for n, a in data.arguments.items()}
    try:
        result = function(*given.values())
        pairs = [(_settled(a), e) for a, e in _returned(result, data.expectation.returned)]
    except RAISED:
        return None
    written = data.expectation.written
    pairs += [(_settled(given[n]), _rounded(want)) for n, want in written.items()]
    leaves = [leaf for _, leaf in flatten(result) if is_tensor(leaf)]
    return Seen(
        pairs,
        inputs_changed=any(_differ(given[n], data.arguments[n]) for n in placed.keys() - written),
        aliased=any(overlap(leaf, given[n]) for leaf in leaves for n in placed),
        behind_changed=any(place.behind_changed for place in placed.values()),
        relaid=not all(leaf.is_contiguous() for leaf in leaves),
    )


def _by_procedure() -> list[list[Rule]]:
    """Return the rules, those together that call alike."""
    kinds = dict.fromkeys((rule.data_sets, rule.calls) for rule in RULES)
    return [[r for r in RULES if (r.data_sets, r.calls) == kind] for kind in kinds]


def _rounded(want: Expected) -> torch.Tensor:
    return want.reference.to(want.dtype)


def _returned(result: Any, expected: object) -> Iterator[Pair]:
    """Yield what a test compares of a result; unpacking one of another length raises."""
    if isinstance(expected, Expected):
        yield result, _rounded(expected)
    elif isinstance(expected, tuple):
        for part, want in zip(result, expected, strict=True):
            yield part, _rounded(want)


def _settled(value: Any) -> Any:
    """Return a tensor as it is now: what a thread writes later, a test may or may not see."""
    if type(value) is not torch.Tensor or value.device.type != "cpu":
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(value)


def _differ(first: torch.Tensor, second: torch.Tensor) -> bool:
    one, other = (t.contiguous().view(torch.uint8) for t in (first, second))
    return not torch.equal(one, other)
