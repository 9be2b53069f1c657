"""Pairs the figures of two reports by identity, and says what forbids comparing them.

Judges no times. Revision, time, libraries and load may differ: they are what one compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from xllm_kernel.benchmark.past.documents import Figure, Identity, Past
from xllm_kernel.platforms.evidence import disclaimer

_LEVEL = re.compile(r"SIMD level (\S+)")


@dataclass(frozen=True, slots=True)
class Pair:
    """The same thing in two reports."""

    identity: Identity
    old: Figure
    new: Figure


@dataclass(frozen=True, slots=True)
class Pairing:
    """What two reports have in common.

    Attributes:
        pairs: figures of one identity, in the new report's order.
        only_old: identities that the new report has no figures of.
        only_new: identities that the old report has no figures of.
        lost: why rows that the new report lists have no figures there, where the old has some.
        reasons: why the reports must not be compared; empty where they may be.
    """

    pairs: Sequence[Pair]
    only_old: Sequence[Identity]
    only_new: Sequence[Identity]
    lost: Sequence[str]
    reasons: Sequence[str]


def pair(old: Past, new: Past) -> Pairing:
    """Pair two reports."""
    pairs = [
        Pair(identity, old.figures[identity], figure)
        for identity, figure in new.figures.items()
        if identity in old.figures
    ]
    only_old = [identity for identity in old.figures if identity not in new.figures]
    only_new = [identity for identity in new.figures if identity not in old.figures]
    lost = {
        f"{i.case_id}, {i.implementation}{_on(i)}: {why}": None
        for i in only_old
        if (why := new.without.get(i) or new.without.get(replace(i, regime="")))
    }
    reasons = _simulated(old, new) or [
        *_facts_that_differ(old, new),
        *(_nothing_in_common(old, new) if not pairs else []),
        *_measured_differently(pairs),
    ]
    return Pairing(pairs, only_old, only_new, list(lost), reasons)


def shown(past: Past) -> dict[str, str]:
    """Return what may differ between two reports that are compared, for a reader to see."""
    receipt = past.document.get("receipt") or {}
    facts = {
        "revision": past.document.get("revision") or "not given",
        "started": past.document["started"],
        "plan": str(receipt.get("plan_hash", "none"))[:12],
        **{
            name: str(past.environment[name])
            for name in ("xllm_kernel", "torch", "load_average")
            if name in past.environment
        },
    }
    facts |= {f"built: {fact}": "" for fact in receipt.get("build", ()) if not _LEVEL.match(fact)}
    if past.document.get("status") == "not_run":
        facts["unfinished"] = "the run did not end; rows that it did not reach have no figures"
    return facts


def _on(identity: Identity) -> str:
    return "" if identity.threads is None else f" on {identity.threads} threads"


def _simulated(old: Past, new: Past) -> list[str]:
    """Refuse what stands for no device, by the one authority on that."""
    return [
        f"{name}: {notice}"
        for name, past in (("OLD", old), ("NEW", new))
        for notice in [disclaimer(past.document.get("evidence"))]
        if notice is not None
    ]


def _level(past: Past) -> str | None:
    """Return the level of whoever has one: an implementation or its baseline."""
    receipts = [past.document.get("receipt"), *(past.document.get("other_receipts") or {}).values()]
    built = [fact for receipt in receipts for fact in (receipt or {}).get("build", ())]
    levels = {found[1] for fact in built if (found := _LEVEL.match(fact))}
    return " and ".join(sorted(levels)) or None


def _processors(past: Past) -> object:
    cpus = past.environment.get("cpus")
    return len(cpus) if isinstance(cpus, list) else past.environment.get("affinity")


def _unnamed_threads(past: Past) -> object:
    """Return the process's threads where rows do not say their own."""
    named = all(identity.threads is not None for identity in past.figures)
    return None if named else past.environment.get("threads")


_FACTS: Mapping[str, Callable[[Past], object]] = {
    "device": lambda past: past.document["device"],
    "mode": lambda past: past.document["mode"],
    "evidence": lambda past: past.document.get("evidence"),
    "processor": lambda past: past.environment.get("device_name"),
    "number of processors": _processors,
    "last-level cache": lambda past: past.environment.get("last_level_cache_bytes"),
    "SIMD level": _level,
    "SIMD level of the ceilings": lambda past: (past.document.get("ceilings") or {}).get("level"),
    "threads": _unnamed_threads,
}


def _facts_that_differ(old: Past, new: Past) -> list[str]:
    """Compare facts that both reports state."""
    found = []
    for name, read in _FACTS.items():
        before, after = read(old), read(new)
        if None not in (before, after) and before != after:
            found.append(_differ(name, [before], [after]))
    return found


def _nothing_in_common(old: Past, new: Past) -> list[str]:
    """Name the parts of the identities that keep every figure from having a partner."""
    if not old.figures or not new.figures:
        empty = " and ".join(n for n, past in (("OLD", old), ("NEW", new)) if not past.figures)
        return [f"figures: there are none in {empty}"]
    found = []
    for part in (field.name for field in fields(Identity)):
        before, after = ({getattr(i, part) for i in past.figures} for past in (old, new))
        if before & after:
            continue
        if part == "case_id":
            found += _cases_that_differ(old, new)
            continue
        found.append(_differ(part, before, after))
        if part == "implementation":
            found[-1] += (
                "; two implementations compare only in turns within one run: "
                "--implementation NEW --baseline OLD"
            )
    return found or ["figures: no operation, implementation, threads, case and regime is in both"]


def _cases_that_differ(old: Past, new: Past) -> list[str]:
    """Say by which parameters two sets of cases differ, if single ones tell."""
    rows = [[figure.row["parameters"] for figure in past.figures.values()] for past in (old, new)]
    names = {name: None for side in rows for parameters in side for name in parameters}
    found = []
    for name in names:
        before, after = ({str(p[name]) for p in side if name in p} for side in rows)
        if before and after and not before & after:
            found.append(_differ(name, before, after))
    return found or ["cases: there is none in both"]


def _measured_differently(pairs: Iterable[Pair]) -> list[str]:
    """Compare what was called and how, of figures whose names are equal."""
    found: dict[str, None] = {}
    for entry in pairs:
        for name, read in _MEASURED.items():
            before, after = read(entry.old), read(entry.new)
            if before != after:
                found[_differ(f"{name} of {entry.identity.case_id}", [before], [after])] = None
    return list(found)


_MEASURED: Mapping[str, Callable[[Figure], Any]] = {
    "parameters": lambda figure: figure.row["parameters"],
    "calls a replay": lambda figure: figure.figures.get("calls_a_replay"),
    "reset": lambda figure: figure.figures.get("reset_before"),
}


def _differ(name: str, before: Iterable[object], after: Iterable[object]) -> str:
    old, new = (", ".join(sorted(map(str, side))) for side in (before, after))
    return f"{name}: {old} in OLD, {new} in NEW"
