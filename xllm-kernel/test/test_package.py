"""The package as imported: no framework, both import orders, names, versions."""

from __future__ import annotations

import pytest

BLOCK_TORCH = "import sys; sys.modules['torch'] = sys.modules['torch_npu'] = None; "
# An audit hook hears of every file and socket that Python opens.
REFUSE_DEVICES = """
def refuse(event, given):
    device = event == "open" and str(given[0]).startswith("/dev/")
    if device or event.startswith("socket."):
        raise SystemError(f"must not be opened: {event} {given}")
sys.addaudithook(refuse)
"""


@pytest.mark.parametrize(
    "code",
    [
        "import xllm_kernel",
        "from xllm_kernel import initialize, prepare_rms_norm, register_kernel, KernelRegistry",
        "import xllm_kernel.catalog as c; assert 'rms_norm' in c.operations()",
        "import xllm_kernel.custom_ops, xllm_kernel.platforms, xllm_kernel.explain",
        "import xllm_kernel.platforms as p; [p.get_platform(d) for d in ('cpu', 'npu')]",
    ],
)
def test_import_needs_no_framework_and_starts_nothing(run_python, code: str) -> None:
    check = (
        "; import threading; assert threading.active_count() == 1; "
        "heavy = {'torch', 'numpy', 'socket', 'subprocess'}; "
        "found = [n for n in heavy if sys.modules.get(n) is not None]; assert not found, found"
    )
    done = run_python("-c", BLOCK_TORCH + REFUSE_DEVICES + code + check)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [("--help",), ("--operation", "rms_norm", "--list")])
@pytest.mark.parametrize("command", ["numerics", "benchmark"])
def test_commands_that_only_tell_open_no_device_and_no_network(
    run_python, command: str, words: tuple[str, ...]
) -> None:
    told = (
        f"from xllm_kernel.{command}.__main__ import main; code = main({list(words)!r}); "
        "import threading; assert threading.active_count() == 1; raise SystemExit(code)"
    )
    done = run_python("-c", BLOCK_TORCH + REFUSE_DEVICES + told)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("first", ["function", "module"])
def test_the_operator_is_a_function_and_a_module_in_either_order(run_python, first: str) -> None:
    lines = [
        "from xllm_kernel.ops import rms_norm",
        "from xllm_kernel.ops.rms_norm import RMS_NORM_CONTRACT",
    ]
    if first == "module":
        lines.reverse()
    lines += [
        "assert callable(rms_norm) and rms_norm.__name__ == 'rms_norm'",
        "assert RMS_NORM_CONTRACT.operation == 'rms_norm'",
        "from xllm_kernel.ops import rms_norm as again",
        "assert again is rms_norm",
    ]
    done = run_python("-c", "\n".join(lines))
    assert done.returncode == 0, done.stderr


def test_the_operator_stays_a_function_after_initialisation(run_python) -> None:
    code = (
        "import xllm_kernel, xllm_kernel.ops; xllm_kernel.initialize(device='cpu'); "
        "import types; assert isinstance(xllm_kernel.ops.rms_norm, types.FunctionType)"
    )
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr


def test_initialize_without_a_framework_names_it(run_python) -> None:
    code = BLOCK_TORCH + "import xllm_kernel; xllm_kernel.initialize(device='cpu')"
    done = run_python("-c", code)
    assert done.returncode == 1
    assert "DependencyAbsentError" in done.stderr
    assert "required module is absent: torch; install PyTorch" in done.stderr


def test_initialize_leaves_the_exit_clean(run_python) -> None:
    code = (
        "import xllm_kernel, torch; xllm_kernel.initialize(device='cpu'); "
        "xllm_kernel.prepare_rms_norm().function(torch.ones(2, 8), torch.ones(8), 1e-6)"
    )
    # Torch's own word about an absent NumPy is not ours to answer for.
    done = run_python("-c", code, env={"PYTHONWARNINGS": "ignore:Failed to initialize NumPy"})
    assert (done.returncode, done.stderr) == (0, "")
