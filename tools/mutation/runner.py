"""Runs tests of one copy of the package, each time in a fork that has pytest and PyTorch loaded.

Runs under the Python of the tests, and knows neither mutants nor Cosmic Ray. Takes a line of JSON
for each run from standard input, ``[[argument, ...], seconds]``, and answers with pytest's exit
status, or with null where the seconds were over.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence


def run(arguments: Sequence[str], seconds: float) -> int | None:
    """Run pytest in a fork, and end whatever it started when it is over."""
    child = multiprocessing.get_context("fork").Process(target=_run_pytest, args=(arguments,))
    child.start()
    child.join(seconds)
    over = child.exitcode is None
    with contextlib.suppress(ProcessLookupError):  # it may have no group yet, or none any more
        os.killpg(child.pid or 0, signal.SIGKILL)
    child.kill()
    child.join()
    return None if over else child.exitcode


def _run_pytest(arguments: Sequence[str]) -> None:
    import pytest

    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os._exit(pytest.main(list(arguments)))


def _load() -> None:
    """Load what every run needs, but nothing of the package."""
    import pytest

    with contextlib.suppress(ImportError):
        import torch  # noqa: F401
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["--version"])  # loads pytest's own plugins
    loaded = [name for name in sys.modules if name.partition(".")[0] == "xllm_kernel"]
    if loaded:
        sys.exit(f"runner: the package must be loaded by each run alone, but there is {loaded}")


def main() -> None:
    """Answer requests until there are no more."""
    _load()
    for line in sys.stdin:
        print(json.dumps(run(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
