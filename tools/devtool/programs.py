"""Long checks that the tests make in little: `./dev evidence NAME`. Decides no verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devtool import npu
from devtool.cmake import configure
from devtool.environments import VENV, VENV_NPU
from devtool.package import CPP
from devtool.shell import BUILD, CPUS, PACKAGE, ROOT, SIMULATOR, alone, environment, run, step

if TYPE_CHECKING:
    from collections.abc import Callable


def domains(*arguments: str) -> int:
    """Judge 10,000 argument sets an implementation by all who check them; `--cases N` for others.

    Those of the simulated NPU only where its environment was made.
    """
    paths = str(PACKAGE / "test")
    with alone():
        configure(PACKAGE, BUILD / "cpp", *CPP)
        target = ["--target", "refusals", "--parallel", CPUS]
        step("Build the C++ API's program", "cmake", "--build", BUILD / "cpp", *target)
    program = BUILD / "cpp/test/cpp/refusals"
    command = ["python", "-m", "domains", "--cpp-api", program, *arguments]
    status = run(command, env=environment(VENV, PYTHONPATH=paths))
    if not (VENV_NPU / "complete").is_file():
        print("Going on without the simulated NPU: ./dev npu-sim makes it.")
        return status
    npu.prepare()
    command = [SIMULATOR / "run", "python", "-m", "domains", "--device", "npu", *arguments]
    return max(status, run(command, env=environment(None, PYTHONPATH=paths)))


def tolerances(*arguments: str) -> int:
    """Print what other projects' rules of comparison let through of the planted faults."""
    command = ["python", ROOT / "tools/evidence/peer_tolerances.py", *arguments]
    return run(command, env=environment(VENV, PYTHONPATH=str(PACKAGE / "python")))


def benchmark(*arguments: str) -> int:
    """Count how often verdicts are right on this machine, of equal code and of slower; --runs N."""
    program = ROOT / "tools/evidence/benchmark_verdicts.py"
    paths = f"{PACKAGE / 'python'}:{program.parent}"
    return run(["python", program, *arguments], env=environment(VENV, PYTHONPATH=paths))


PROGRAMS: dict[str, Callable[..., int]] = {
    "benchmark": benchmark,
    "domains": domains,
    "tolerances": tolerances,
}
