"""A program that puts faults through their scenarios, each in a process of its own.

The processes are forked after PyTorch and torch_npu are imported, which takes long, and before
anything touches a device, after which torch_npu allows no fork.

Usage: faulty_worker.py LIBRARY TRIALS, where TRIALS is a JSON list of objects with ``name``,
``scenario`` and ``environment``. Prints a JSON list of what each scenario saw: null for nothing.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable

import scenarios
import torch
import torch_npu  # noqa: F401
from norm_data import Subject
from simulator import find_simulator

PAIRS = {
    # The processor of that scenario has no bfloat16.
    "an_unsupported_processor_is_refused": ((torch.float16, torch.float16),),
}
BOTH = ((torch.float16, torch.float16), (torch.bfloat16, torch.bfloat16))


def main(library: str, trials: str) -> None:
    print(json.dumps([_forked(library, **trial) for trial in json.loads(trials)]))


def _forked(library: str, **trial: object) -> str | None:
    """Try in a child and return what it saw."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as stream:
            json.dump(_seen(library, **trial), stream)
        os._exit(0)  # whatever a fault has broken must not disturb the exit
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else f"the process died: wait status {status}"


def _seen(library: str, name: str, scenario: str, environment: dict[str, str]) -> str | None:
    os.environ.update(environment)
    torch.ops.load_library(library)
    simulator = find_simulator()
    function = getattr(torch.ops, name).xlite_rms_norm.default
    subject = Subject(function, PAIRS.get(scenario, BOTH), simulator)
    said = [_outcome(getattr(scenarios, scenario), subject)]
    said += [f"{r['kind']}: {r['text']}" for r in simulator.take_reports()]
    return "\n".join(filter(None, said)) or None


def _outcome(scenario: Callable[..., None], subject: Subject) -> str | None:
    # pytest.raises ends in no Exception where nothing is raised.
    other = ("npu:1",) if "another_device" in scenario.__name__ else ()
    try:
        scenario(subject, *other)
        torch.npu.synchronize()
    except BaseException:  # noqa: BLE001 (whatever a fault leads to is what the caller asks about)
        return traceback.format_exc()
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
