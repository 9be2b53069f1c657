"""Reads a benchmark's JSON report and refuses what is none, so that no judge meets half a figure.

Judges nothing; of a run that was killed, what it had measured by then can be read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xllm_kernel.errors import KernelError
from xllm_kernel.numerics.report import SCHEMA_VERSION
from xllm_kernel.platforms.evidence import disclaimer

_IMPOSSIBLE = "its figure was faster than the machine allows, an error of measurement"
_WORDS = ("operation", "implementation", "device", "mode", "started")


class DocumentError(KernelError):
    """A file is no benchmark report that this version can read."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes two figures figures of the same thing.

    Attributes:
        operation: name of the operation.
        implementation: full name.
        threads: inside the operator; None where that has no meaning.
        case_id: the case.
        regime: what was timed: ``hot``, ``cold``, ``enqueue`` or ``graph``.
    """

    operation: str
    implementation: str
    threads: int | None
    case_id: str
    regime: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One regime's figures in a row.

    Attributes:
        row: the row that it belongs to.
        figures: as in the report.
        samples: microseconds a call, in the order they were taken, all positive.
    """

    row: Mapping[str, Any]
    figures: Mapping[str, Any]
    samples: Sequence[float]

    @property
    def unstable(self) -> Sequence[str]:
        """Why the figure should not be relied on; empty where it is stable."""
        reasons: Sequence[str] = self.figures["unstable"]
        return reasons

    @property
    def impossible(self) -> bool:
        """Whether it is faster than the machine allows: an error of measurement."""
        return bool((self.figures.get("roofline") or {}).get("impossible"))

    @property
    def against(self) -> Mapping[str, Any]:
        """The comparison with the baseline; empty where there is none."""
        found: Mapping[str, Any] = self.figures.get("against") or {}
        return found


@dataclass(frozen=True, slots=True)
class Past:
    """A report, its figures by identity.

    Attributes:
        name: the file, for messages.
        document: the whole report.
        figures: of the rows that have any which stand for a device; none that is impossible.
        without: why there is no figure, by identity; its regime is empty for the whole row.
    """

    name: str
    document: Mapping[str, Any]
    figures: Mapping[Identity, Figure]
    without: Mapping[Identity, str]

    @property
    def environment(self) -> Mapping[str, Any]:
        """Facts of the machine."""
        facts: Mapping[str, Any] = self.document["environment"]
        return facts


def load(path: Path) -> Past:
    """Read a report.

    Args:
        path: of its JSON.

    Raises:
        DocumentError: for a file that cannot be read, that is damaged, or that is something else.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _refusal(path, "must be a file that can be read", str(error)) from error
    except (ValueError, RecursionError) as error:
        raise _refusal(path, "must hold JSON, whole", f"{type(error).__name__}: {error}") from error
    return parse(document, str(path))


def parse(document: object, name: str) -> Past:
    """Take a report that was read already.

    Args:
        document: JSON values.
        name: for messages.

    Raises:
        DocumentError: where it is no benchmark report of this schema, or its figures are damaged.
    """
    whole = _mapping(document, name, "the report")
    kind, version = whole.get("kind"), whole.get("schema_version")
    if kind != "benchmark":
        raise _refusal(name, "must be a report of kind 'benchmark'", repr(kind))
    if version != SCHEMA_VERSION:
        raise _refusal(name, f"must have schema_version {SCHEMA_VERSION}", repr(version))
    for key in _WORDS:
        if not isinstance(whole.get(key), str):
            raise _refusal(name, f"'{key}' must be text", repr(whole.get(key)))
    for key in ("revision", "evidence"):
        _check_word(whole.get(key), name, f"'{key}'")
    _mapping(whole.get("environment"), name, "'environment'")
    _optional(whole, "ceilings", name, "the report")
    others = _optional(whole, "other_receipts", name, "the report")
    for receipts, key in ((whole, "receipt"), *((others, key) for key in others)):
        build = _optional(receipts, key, name, "the report").get("build", [])
        _check_words(build, name, f"'build' of '{key}'")
    rows = whole.get("rows")
    if not isinstance(rows, list):
        raise _refusal(name, "'rows' must be a list", type(rows).__name__)
    figures: dict[Identity, Figure] = {}
    without: dict[Identity, str] = {}
    seen: set[Identity] = set()
    for number, row in enumerate(rows):
        every = dict(_figures(_mapping(row, name, f"rows[{number}]"), name))
        if not every:
            without[_identity(row, "")] = str(row.get("reason") or row.get("status"))
        found = {identity: one for identity, one in every.items() if not one.impossible}
        without |= dict.fromkeys(every.keys() - found.keys(), _IMPOSSIBLE)
        twice = seen & every.keys()
        if twice:
            which = f"two of {min(map(str, twice))}"
            raise _refusal(name, "must have one figure of each identity", which)
        seen |= every.keys()
        figures |= found
    return Past(name, whole, _without_impossible_baselines(figures, without), without)


def _without_impossible_baselines(
    figures: Mapping[Identity, Figure], without: Mapping[Identity, str]
) -> dict[Identity, Figure]:
    """Take away what was divided by a figure that is an error of measurement."""
    found = {}
    for identity, figure in figures.items():
        base = replace(identity, implementation=str(figure.against.get("baseline")))
        gone = without.get(base) == _IMPOSSIBLE
        alone = {**figure.figures, "against": None}
        found[identity] = replace(figure, figures=alone) if gone else figure
    return found


def _identity(row: Mapping[str, Any], regime: str) -> Identity:
    return Identity(
        row["operation"], row["implementation"], row.get("threads"), row["case_id"], regime
    )


def _figures(row: Mapping[str, Any], name: str) -> Iterator[tuple[Identity, Figure]]:
    for key in ("operation", "implementation", "case_id"):
        if not isinstance(row.get(key), str):
            raise _refusal(name, f"a row's '{key}' must be text", repr(row.get(key)))
    threads = row.get("threads")
    if threads is not None and not isinstance(threads, int):
        raise _refusal(name, "a row's 'threads' must be a number or null", repr(threads))
    _check_word(row.get("evidence"), name, "a row's 'evidence'")
    # Whatever somebody wrote there: times of a stand-in are no figures.
    if row.get("timings") is None or disclaimer(row.get("evidence")):
        return
    if row.get("status") != "passed":
        return  # figures of a case that failed were withdrawn, or should have been
    where = f"row {row['case_id']}"
    _mapping(row.get("parameters"), name, f"{where}: 'parameters'")
    timings = _mapping(row["timings"], name, f"{where}: 'timings'")
    for regime, value in _mapping(timings.get("regimes"), name, f"{where}: 'regimes'").items():
        figures = _mapping(value, name, f"{where}, {regime}")
        samples = _samples(figures, regime, name, f"{where}, {regime}")
        yield _identity(row, regime), Figure(row, figures, samples)


def _samples(figures: Mapping[str, Any], regime: str, name: str, where: str) -> Sequence[float]:
    """Return the samples of the column that counts, after all that is read later was checked."""
    _check_words(figures.get("unstable"), name, f"{where}: 'unstable'")
    against = _optional(figures, "against", name, where)
    for ratio in (figures.get("noise_floor"), against.get("noise_floor"), against.get("ratio")):
        _check_ratio(ratio, name, where)
    roofline = _optional(figures, "roofline", name, where)
    empty = _optional(_optional(figures, "empty_callable", name, where), "wall_us", name, where)
    numbers = {
        "iterations": figures.get("iterations", 1),
        "the empty callable's median": empty.get("median", 0.0),
        "the share of the ceiling": roofline.get("share", 0.0),
        **_optional(roofline, "ceilings_us", name, where),
    }
    for what, value in numbers.items():
        if not 0.0 <= _number(value) < math.inf:
            raise _refusal(name, f"{where}: {what} must be a finite number from 0", repr(value))
    # Of a call that returns before the device is done, the host's time is what is asked for.
    asked = "host_enqueue_us" if regime == "enqueue" else "wall_us"
    column = asked if asked in figures else "wall_us"
    samples = _mapping(figures.get(column), name, f"{where}: '{column}'").get("samples")
    if not isinstance(samples, list) or not samples:
        raise _refusal(name, f"{where}: '{column}' must have samples", repr(samples))
    for sample in samples:
        if not 0.0 < _number(sample) < math.inf:
            raise _refusal(name, f"{where}: samples must be finite times above 0", repr(sample))
    return samples


def _check_ratio(value: Mapping[str, Any] | None, name: str, where: str) -> None:
    """Refuse a ratio that is none; an end that is not known is 0 or ``inf``."""
    try:
        good = value is None or (
            float(value["low"]) <= float(value["middle"]) <= float(value["high"])
            and 0.0 < float(value["middle"]) < math.inf
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        good = False
    if not good:
        raise _refusal(name, f"{where}: a ratio must have low <= middle <= high", repr(value))


def _number(value: object) -> float:
    """Return a number that a calculation can use; NaN for what is none, or too large for one."""
    try:
        return float(value) if isinstance(value, (int, float)) else math.nan
    except OverflowError:
        return math.nan


def _check_word(value: object, name: str, what: str) -> None:
    if value is not None and not isinstance(value, str):
        raise _refusal(name, f"{what} must be text or null", repr(value))


def _check_words(value: object, name: str, what: str) -> None:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise _refusal(name, f"{what} must be a list of texts", repr(value))


def _optional(whole: Mapping[str, Any], key: str, name: str, where: str) -> Mapping[str, Any]:
    """Return an object that may be absent or null, as an empty one then."""
    value = whole.get(key)
    return {} if value is None else _mapping(value, name, f"{where}: '{key}'")


def _mapping(value: object, name: str, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _refusal(name, f"{what} must be an object", type(value).__name__)
    return value


def _refusal(name: object, must: str, seen: str) -> DocumentError:
    return DocumentError(
        f"benchmark report '{name}': {must}, got {seen}; give the JSON that "
        "python -m xllm_kernel.benchmark --output wrote"
    )
