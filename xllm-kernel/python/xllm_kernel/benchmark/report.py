"""What a benchmark's rows show to people; generic, as the report itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xllm_kernel.numerics.render import NOTHING, Columns
from xllm_kernel.numerics.report import Row
from xllm_kernel.platforms.evidence import disclaimer


def _timings(row: Row) -> Mapping[str, Any]:
    """Return what may be shown of a row's timings: nothing that stands for no device."""
    return {} if row.timings is None or disclaimer(row.evidence) else row.timings


def _column(row: Row, name: str) -> Mapping[str, Any]:
    statistics: Mapping[str, Any] = _timings(row).get(name, {})
    return statistics


def _median(row: Row) -> str:
    """Show the median, or the word that says why there is none to show."""
    if row.timings is not None and disclaimer(row.evidence):
        return str(row.evidence)
    return _wall("median")(row)


def _wall(key: str) -> Callable[[Row], str]:
    return lambda row: microseconds(_column(row, "wall_us").get(key))


def _empty(row: Row) -> str:
    idle = _column(row, "empty_callable").get("wall_us", {})
    return microseconds(idle.get("median"))


def _others(row: Row) -> str:
    """Show the medians that only some devices have."""
    shown = [
        f"{name.removesuffix('_us')} {microseconds(_column(row, name)['median'])}"
        for name in ("host_enqueue_us", "device_interval_us")
        if _column(row, name)
    ]
    return ", ".join(shown) or NOTHING


def _samples(row: Row) -> str:
    timings = _timings(row)
    if not timings:
        return NOTHING
    calls = timings["iterations"] * timings["calls_a_replay"]
    unstable = " unstable" if _column(row, "wall_us").get("unstable") else ""
    return f"{timings['repeats']} x {calls}{unstable}"


def microseconds(value: object) -> str:
    """Show microseconds with about four digits; a dash for none."""
    if not isinstance(value, (int, float)):
        return NOTHING
    digits = 3 if value < 10 else 2 if value < 100 else 1
    return f"{value:.{digits}f}"


def _reset(row: Row) -> str:
    return microseconds(_column(row, "reset_us").get("median"))


COLUMNS: Columns = (
    ("median us", _median),
    ("p90", _wall("p90")),
    ("min", _wall("minimum")),
    ("MAD", _wall("median_absolute_deviation")),
    ("empty", _empty),
    ("reset", _reset),
    ("device", _others),
    ("samples", _samples),
)
