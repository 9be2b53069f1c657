"""Set up, build, test and demonstrate this repository."""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from devtool import attack, evidence, npu, programs
from devtool.cmake import configure
from devtool.environments import (
    MINIMAL,
    PEERS,
    VENV,
    VENV_NPU,
    ensure_venv,
    install_editable,
    install_peers,
    install_plain,
    installed,
)
from devtool.legs import Leg, run_legs
from devtool.package import CPP, cpp_legs, run_python
from devtool.shell import (
    BUILD,
    CPUS,
    PACKAGE,
    ROOT,
    SIMULATOR,
    DevError,
    Interrupted,
    alone,
    environment,
    run,
    step,
)
from devtool.suites import Suite, summarise
from devtool.system import require_packages

if TYPE_CHECKING:
    from collections.abc import Callable

PYTHON = "Python"  # the leg over the sources


def demo(*arguments: str) -> int:
    """Set up, build, and run the kernels on a real model; reports go to build/demo/."""
    build()
    return run(["python", "examples/smollm2/demo.py", *arguments], env=environment(VENV))


def test(*arguments: str) -> int:
    """Set up, build, and run all tests, C++ and Python; given arguments, only pytest with them."""
    require_packages(tests=True)
    if arguments:
        build()
        return summarise(run_python(PYTHON, VENV, *arguments))
    with alone():
        return summarise(*run_legs(test_legs()))


def test_legs() -> list[Leg]:
    """Return all tests: the quick ones first, those that keep one processor busy, then builds."""
    package, *variants = cpp_legs()
    simulator, *sanitized, device = npu.legs(PYTHON)
    minimal = Leg("Python, minimal", in_minimal)
    return [package, Leg(PYTHON, in_place), simulator, minimal, device, *variants, *sanitized]


def in_place() -> list[Suite]:
    """Set up, build, and run the Python tests over the sources."""
    build()
    return [run_python(PYTHON, VENV)]


def in_minimal() -> list[Suite]:
    """Run the Python tests where nothing optional is, over the package as users install it."""
    ensure_venv(MINIMAL, "minimal.txt")
    install_plain()
    return [run_python("Python, minimal", MINIMAL)]


def setup() -> None:
    """Make .venv: pinned packages, the example model, and xllm-kernel itself, editable."""
    require_packages()
    with alone():
        ensure_venv(VENV, "dev.txt", "model.txt")
        install_editable(VENV)


def build() -> None:
    """Set up, and compile the C++ kernels in place."""
    setup()
    options = {"XLLM_KERNEL_BUILD_SIMD": "1", "XLLM_KERNEL_BUILD_FASTCALL": "1"}
    env = environment(VENV, **options, MAX_JOBS=CPUS)
    with alone():
        command = [VENV / "bin/python", "setup.py", "build_ext", "--inplace"]
        step("Build the C++ kernels", *command, cwd=PACKAGE, env=env)


def bench(*arguments: str) -> int:
    """Time an operator of other libraries beside ours (rms_norm or fused_add_rms_norm)."""
    build()
    with alone():
        ensure_venv(PEERS, "peers.txt")
        install_peers()
    sources = f"{PACKAGE / 'python'}:{PACKAGE / 'bench'}"
    compiled = str(BUILD / "peers/inductor")
    env = environment(PEERS, PYTHONPATH=sources, TORCHINDUCTOR_CACHE_DIR=compiled)
    return run(["python", "-m", "peers", *arguments], env=env)


def mutation(*arguments: str) -> int:
    """Plant faults in the shared modules and count those that their tests notice."""
    build()
    return attack.run_mutation(*arguments)


def npu_sim() -> None:
    """Make .venv-npu with the NPU's wheels, the simulated Ascend runtime, and the xlite bridge."""
    npu.prepare()
    print("Ready: ascend-sim/run python -m xllm_kernel explain --device npu")


def npu_evidence() -> int:
    """On a machine with an NPU: validate, time and test what it has, and bundle the results."""
    return evidence.gather()


def evidence_(*arguments: str) -> int:
    """Make a long check (benchmark, domains, tolerances) that the tests make in little."""
    program = programs.PROGRAMS.get(arguments[0] if arguments else "")
    if program is None:
        raise DevError(
            f"evidence must be one of {', '.join(programs.PROGRAMS)}, got "
            f"{shlex.join(arguments) or 'none'}: ./dev evidence domains"
        )
    require_packages(tests=True)
    build()
    return program(*arguments[1:])


def cpp_files() -> list[Path]:
    """Return the C++ files of the package, the simulator and the examples."""
    folders = (PACKAGE, SIMULATOR, ROOT / "examples")
    files = (path.relative_to(ROOT) for folder in folders for path in folder.rglob("*.*"))
    cpp = (path for path in files if path.suffix in (".h", ".cc", ".cpp"))
    return sorted(path for path in cpp if not {"build", "_build"} & set(path.parts))


def check_all(**commands: list[object]) -> int:
    """Run every tool, so that one run shows all that is wrong."""
    env = environment(VENV)
    failed = [n for n, line in commands.items() if step(n, *line, check=False, env=env)]
    print(f"Failed: {', '.join(failed)}" if failed else "All is well.")
    return int(bool(failed))


def format_() -> int:
    """Format C++ and Python in place, apply the linter's own fixes, and renew the docs' tables."""
    setup()
    return check_all(
        clang_format=["clang-format", "-i", *cpp_files()],
        ruff_fix=["ruff", "check", "--fix-only", "."],
        ruff_format=["ruff", "format", "."],
        domain_tables=["python", "tools/domain_tables.py"],
    )


def lint() -> int:
    """Check format, style and types of C++ and Python."""
    require_packages(tests=True)
    setup()
    database = BUILD / "lint"
    torch = f"-DXLLM_KERNEL_TORCH_DIR={installed(VENV, 'torch')}"
    with alone():
        configure(PACKAGE, database, *CPP, "-DXLLM_KERNEL_BUILD_TORCH=ON", torch)
        others = npu.configure_for_lint()
    tidy = ["run-clang-tidy.py", "-clang-tidy-binary", VENV / "bin/clang-tidy", "-quiet"]
    tidy += ["-j", CPUS, "-p"]
    return check_all(
        clang_format=["clang-format", "--dry-run", "--Werror", *cpp_files()],
        ruff_check=["ruff", "check", "."],
        ruff_format=["ruff", "format", "--check", "."],
        mypy=["mypy"],
        clang_tidy=[*tidy, database],
        **{name: [*tidy, *what] for name, what in others.items()},
    )


def clean() -> None:
    """Remove .venv, build/ and whatever else the verbs made."""
    made = [PACKAGE / "build", PACKAGE / "python/xllm_kernel/_build", VENV, VENV_NPU]
    for name in ("*.egg-info", "__pycache__"):
        made += [*PACKAGE.rglob(name), *(ROOT / "examples").rglob(name)]
    made += [ROOT / f".{tool}_cache" for tool in ("mypy", "pytest", "ruff")]
    with alone():
        for venv in (VENV, VENV_NPU):
            (venv / "complete").unlink(missing_ok=True)
        for path in filter(Path.exists, [*made, BUILD]):
            shutil.rmtree(path)


def help_() -> None:
    """List the verbs."""
    print(f"{(__doc__ or '').splitlines()[0]}\n\nUsage: ./dev VERB\n")
    for name, verb in VERBS.items():
        print(f"  {name:12} {(verb.__doc__ or '').splitlines()[0]}")


VERBS: dict[str, Callable[..., int | None]] = {
    verb.__name__.rstrip("_").replace("_", "-"): verb
    for verb in (
        *(demo, test, setup, build, bench, evidence_, mutation, npu_sim, npu_evidence),
        *(format_, lint, clean, help_),
    )
}


def interrupt(number: int, _frame: object) -> NoReturn:
    """Turn a signal into an exception, so that children are ended on the way out."""
    raise Interrupted(number)


def main(name: str = "help", *arguments: str) -> int:
    """Run the verb that the command line names."""
    verb = VERBS.get(name.removeprefix("--"))
    if verb is None or (arguments and verb not in (demo, test, bench, evidence_, mutation)):
        print(
            f"./dev: no such use: {shlex.join([name, *arguments])}; see ./dev help", file=sys.stderr
        )
        return 2
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    try:
        return verb(*arguments) or 0
    except (DevError, OSError) as error:
        print(f"\n./dev {name}: {error}", file=sys.stderr)
        return 1
    except Interrupted as interruption:
        print(f"\n./dev {name}: interrupted; run it again to go on", file=sys.stderr)
        return 128 + int(interruption.args[0])
