"""The C++ API's voice: a program answers line by line; its statuses are held against clauses.

The API knows no device and has its own order of checks, and some statuses stand for several
clauses. Decides nothing but whether it was asked the same and said the same.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from domains.arguments import Arguments, Laid, facts_of, fits, is_small
from xllm_kernel.domain import Domain

# What views can be made of.
_DTYPES = ("float32", "float16", "bfloat16")

# Status, and the clauses that it stands for, in the order in which each function checks.
_READ = (
    ("kInputRank", ("input.rank",)),
    ("kWeightRank", ("weight.rank",)),
    ("kWeightDType", ("weight.dtype",)),
    ("kInputWidth", ("input.width",)),
    ("kWeightWidth", ("weight.width",)),
    ("kInputStride", ("input.stride",)),
    ("kWeightStride", ("weight.stride",)),
    ("kEps", ("eps",)),
)
_RESIDUAL = (
    ("kResidualShape", ("residual.shape",)),
    ("kResidualDType", ("residual.dtype",)),
    ("kResidualStride", ("residual.stride",)),
)
STATUSES = {
    "rms_norm": _READ,
    "rms_norm_out": (
        *_READ,
        ("kOutputShape", ("output.shape",)),
        ("kOutputDType", ("output.dtype",)),
        ("kOutputStride", ("output.stride", "output.rows")),
        ("kOutputOverlap", ("output.apart_from_input", "output.apart_from_weight")),
    ),
    "fused_add_rms_norm": (*_READ, *_RESIDUAL),
    "fused_add_rms_norm_inplace": (
        *_READ,
        *_RESIDUAL,
        ("kOutputStride", ("input.rows",)),
        ("kSumStride", ("residual.rows",)),
        ("kOutputAlias", ("input.apart_from_residual", "input.apart_from_weight")),
        ("kSumAlias", ("residual.apart_from_weight",)),
    ),
}


class CppApi:
    """One process of the program, for any number of argument sets of one domain."""

    def __init__(self, program: Path, domain: Domain) -> None:
        self._domain = domain
        self._clauses = {clause.name: clause for clause in domain.clauses}
        self._child = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __enter__(self) -> CppApi:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(60)

    def disagreement(self, arguments: Arguments) -> str | None:
        """Return what the API said where the clauses make it say something else."""
        wanted, said = self.expected(arguments), self.ask(arguments)
        return None if said == wanted else f"{said}, but by the clauses {wanted}"

    def can_say(self, arguments: Arguments) -> bool:
        """Say whether the API can be asked: plain memory on the processor, not too much of it."""
        tensors = [arguments[name] for name in self._domain.tensors]
        if not all(isinstance(one, Laid) and one.device == "cpu" for one in tensors):
            return False
        return fits(arguments) and is_small(arguments)

    def expected(self, arguments: Arguments) -> str:
        """Return the answer that follows from the clauses."""
        for number, name in enumerate(self._domain.tensors):
            if arguments[name].dtype not in _DTYPES:
                return f"{number} kUnknownDType"
        facts = facts_of(arguments)
        for status, names in STATUSES[self._domain.operation]:
            for name in names:
                if self._clauses[name].violation(facts) is not None:
                    return status
        return "kOk"

    def ask(self, arguments: Arguments) -> str:
        """Return the program's answer.

        Raises:
            RuntimeError: where the program ended instead.
        """
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        print(_line(self._domain, arguments), file=self._child.stdin, flush=True)
        answer = self._child.stdout.readline().rstrip("\n")
        if not answer:
            raise RuntimeError(f"the C++ API ended with status {self._child.wait(60)}")
        return answer


def _line(domain: Domain, arguments: Arguments) -> str:
    words: list[Any] = [domain.operation]
    words += [float(arguments[name]).hex() for name in domain.numbers]
    words.append(len(domain.tensors))
    for name in domain.tensors:
        laid = arguments[name]
        words += [laid.dtype, laid.memory, laid.offset, len(laid.shape)]
        words += [*laid.shape, *laid.strides]
    return " ".join(map(str, words))
