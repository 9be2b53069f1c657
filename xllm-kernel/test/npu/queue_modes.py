"""torch_npu's ways to submit work, each fixed for a process: the scenarios again in each."""

from __future__ import annotations

from pathlib import Path

from processes import Command, run_all, text_of

# Level 1 is the default and this process's own. Level 2 refuses every capture.
MODES: dict[str, tuple[dict[str, str], str]] = {
    "TASK_QUEUE_ENABLE=0": ({"TASK_QUEUE_ENABLE": "0"}, "test_eager or test_graph"),
    "TASK_QUEUE_ENABLE=2": ({"TASK_QUEUE_ENABLE": "2"}, "test_eager"),
    "ASCEND_LAUNCH_BLOCKING=1": ({"ASCEND_LAUNCH_BLOCKING": "1"}, "test_eager or test_graph"),
}


def assert_every_mode_passes(file: Path, implementation: str) -> None:
    """Run a file's scenarios in a process for each mode.

    Args:
        file: the test file.
        implementation: what it binds.
    """
    commands = [
        Command(
            ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", selected, str(file)),
            {"XLLM_KERNEL_OVERRIDE_RMS_NORM": implementation, **environment},
        )
        for environment, selected in MODES.values()
    ]
    for name, done in zip(MODES, run_all(commands), strict=True):
        assert done.returncode == 0, f"{name}: {text_of(done)}"
