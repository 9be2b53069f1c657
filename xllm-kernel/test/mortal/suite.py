"""The operation's suite: a case a deed."""

from __future__ import annotations

from dataclasses import dataclass

from xllm_kernel.numerics.binding import bind
from xllm_kernel.numerics.suite import PreparedCase


@dataclass(frozen=True)
class Case:
    deed: str

    @property
    def case_id(self):
        return f"mortal/{self.deed}"

    @property
    def parameters(self):
        return {"deed": self.deed}

    def unsupported_reason(self, plan):
        return "does nothing" if self.deed == "nothing" else None

    def prepare(self, plan):
        def validate(function):
            good = function() == self.deed
            return {"status": "passed" if good else "failed", "reason": None if good else "wrong"}

        return PreparedCase(function=lambda: plan.function(self.deed), validate=validate)


class Suite:
    operation = "mortal"
    implementations = ("cpu.plain.mortal", "cpu.other.mortal")

    def add_arguments(self, parser):
        parser.add_argument("--deeds", nargs="+", default=["honest"])

    def cases(self, args):
        return [Case(deed) for deed in args.deeds]

    def trials(self, args):
        return []

    def prepare(self, device, mode, implementation):
        return bind(self.operation, device, mode, implementation)


SUITE = Suite()
