"""``python -m xllm_kernel.numerics``: validate one implementation against its operation's suite."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xllm_kernel.numerics import arguments, self_test, verify
from xllm_kernel.numerics.render import NOTHING, Columns, Tables, number
from xllm_kernel.numerics.report import Row


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    if self_test.FLAG in argv:
        return self_test.main([word for word in argv if word != self_test.FLAG])
    request = arguments.parse("numerics", argv)
    settings = {"warmup": request.warmup, "threads": request.threads}
    return verify.run(request, verify.Command(Tables(COLUMNS), settings))


def worst_output(row: Row) -> Mapping[str, Any]:
    """Return the output of a row's verdicts that used most of its tolerance; empty for none."""
    outputs = [o for verdict in row.validation.values() for o in verdict.get("outputs", ())]
    return max(outputs, key=lambda o: float(o["ratio"]), default={})


def _figure(key: str) -> Callable[[Row], str]:
    return lambda row: number(worst_output(row).get(key))


def _holds(row: Row) -> str:
    """Return what a certificate's row found out; nothing of any other row."""
    found = row.metadata.get("holds")
    return NOTHING if found is None else "holds" if found else "does not hold"


COLUMNS: Columns = (
    ("certificate", _holds),
    ("max ULP", _figure("max_error_ulp")),
    ("allowed", _figure("limit_ulp")),
    ("x baseline", _figure("ratio")),
    ("rms ULP", _figure("rms_error_ulp")),
    ("allowed", _figure("rms_limit_ulp")),
)


if __name__ == "__main__":
    raise SystemExit(main())
