"""``python -m xllm_kernel.benchmark``: time an implementation, or read what runs have left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from xllm_kernel.benchmark import command
from xllm_kernel.benchmark.past import compare, history

_VERBS: dict[str, Callable[[Sequence[str]], int]] = {
    "compare": compare.main,
    "history": history.main,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    verb = _VERBS.get(argv[0]) if argv else None
    return command.main(argv) if verb is None else verb(argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
