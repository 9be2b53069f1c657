"""The implementations of a device, and which of them have a domain to ask about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from domains.agreement import OutsideVoice
from domains.cpp_api import CppApi
from domains.voices import Subject
from xllm_kernel import catalog
from xllm_kernel.registry import KernelRegistry

CPP_API = "C++ API"
_CPP_SOLUTION = "simd"


def subjects() -> tuple[list[Subject], list[str]]:
    """Return those with a domain, and the names of those without, once the process is prepared."""
    registry = KernelRegistry.get()
    every = [one for name in catalog.operations() for one in registry.candidates(name)]
    with_domain = [Subject.of(one) for one in every if one.spec.domain is not None]
    return with_domain, [one.spec.name for one in every if one.spec.domain is None]


@contextmanager
def other_voices(subject: Subject, program: Path | None) -> Iterator[dict[str, OutsideVoice]]:
    """Offer the C++ API's voice about the solution that it is the API of.

    Args:
        subject: the implementation.
        program: the built ``refusals``; None does without.
    """
    if program is None or subject.name.split(".")[1] != _CPP_SOLUTION:
        yield {}
        return
    with CppApi(program, subject.domain) as api:
        yield {CPP_API: api}
