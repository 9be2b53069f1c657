"""``python -m xllm_kernel.benchmark compare OLD NEW``: is the new run slower than the old one?

Reads, pairs, judges by rules that live elsewhere, prints, and returns the exit code.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from xllm_kernel.benchmark.past.documents import DocumentError, Identity, Past, load
from xllm_kernel.benchmark.past.judge import Judged, judge
from xllm_kernel.benchmark.past.pairing import Pairing, pair, shown
from xllm_kernel.benchmark.statistics import Verdict
from xllm_kernel.benchmark.tables import KEPT, Plain, drawn, fitted, printable, room
from xllm_kernel.numerics import streams
from xllm_kernel.numerics.render import NOTHING, number
from xllm_kernel.numerics.report import json_value, replace_text

SCHEMA_VERSION = 1
NO_REGRESSION, REGRESSION, USAGE, NOT_COMPARABLE, AMBIGUOUS = 0, 1, 2, 3, 5
# Below it, where memory happens to lie decides as much as the code does; above, users notice.
DEFAULT_GATE = 0.05

_WORDS = {
    NO_REGRESSION: "NO REGRESSION",
    REGRESSION: "REGRESSION",
    NOT_COMPARABLE: "NOT COMPARABLE",
    AMBIGUOUS: "AMBIGUOUS",
}
_WORST_FIRST = (Verdict.SLOWER, Verdict.AMBIGUOUS, Verdict.SAME, Verdict.FASTER)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of two reports.

    Attributes:
        old: the earlier report.
        new: the later one.
        gate: the slowdown that matters, as a share.
        pairing: what they have in common.
        rows: judged pairs, the worst first; none where the reports are not comparable.
    """

    old: Past
    new: Past
    gate: float
    pairing: Pairing
    rows: Sequence[Judged]

    @property
    def unsettled(self) -> str | None:
        """Why nothing can be said of the whole although no row is slower, or None."""
        counts = Counter(row.verdict for row in self.rows)
        stable = sum(not (p.old.unstable or p.new.unstable) for p in self.pairing.pairs)
        reasons = []
        if counts[Verdict.AMBIGUOUS]:
            reasons.append(f"{counts[Verdict.AMBIGUOUS]} of {len(self.rows)} figures are ambiguous")
        if self.pairing.lost:
            reasons.append(f"{len(self.pairing.lost)} rows of OLD have no figures in NEW")
        if 2 * stable < len(self.rows):
            reasons.append(f"only {stable} of {len(self.rows)} figures are stable in both runs")
        return "; ".join(reasons) or None

    @property
    def exit_code(self) -> int:
        """The process's."""
        if self.pairing.reasons:
            return NOT_COMPARABLE
        if any(row.verdict is Verdict.SLOWER for row in self.rows):
            return REGRESSION
        return AMBIGUOUS if self.unsettled else NO_REGRESSION

    @property
    def verdict(self) -> str:
        """One line."""
        word = _WORDS[self.exit_code]
        if self.pairing.reasons:
            return f"{word}  {self.pairing.reasons[0]}"
        counts = Counter(row.verdict for row in self.rows)
        shown = ", ".join(f"{counts[v]} {v.value}" for v in _WORST_FIRST if counts[v])
        tail = f"; {self.unsettled}" if self.exit_code == AMBIGUOUS else ""
        return f"{word}  gate {100 * self.gate:g} %, {len(self.rows)} figures: {shown}{tail}"

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        document: dict[str, Any] = json_value(
            {
                "schema_version": SCHEMA_VERSION,
                "kind": "comparison",
                "exit_code": self.exit_code,
                "verdict": self.verdict,
                "gate": self.gate,
                "old": {"report": self.old.name, "facts": shown(self.old)},
                "new": {"report": self.new.name, "facts": shown(self.new)},
                "not_comparable": self.pairing.reasons,
                "rows": [_row(row) for row in self.rows],
                "only_old": [asdict(identity) for identity in self.pairing.only_old],
                "only_new": [asdict(identity) for identity in self.pairing.only_new],
                "lost": self.pairing.lost,
            }
        )
        return document


def compare(old: Past, new: Past, gate: float = DEFAULT_GATE) -> Comparison:
    """Compare two reports.

    Args:
        old: the earlier one.
        new: the later one.
        gate: the slowdown that matters, as a share.
    """
    pairing = pair(old, new)
    rows = [] if pairing.reasons else judge(pairing.pairs, gate)
    rows.sort(key=lambda row: (_WORST_FIRST.index(row.verdict), -row.ratio.middle))
    return Comparison(old, new, gate, pairing, rows)


def main(argv: Sequence[str]) -> int:
    """Run the command line that follows the word ``compare``; return the exit code."""
    streams.open_all()
    options = _parser().parse_args(argv)
    try:
        comparison = compare(load(options.old), load(options.new), options.gate)
        if options.output is not None:
            text = json.dumps(comparison.as_dict(), indent=2, allow_nan=False, ensure_ascii=False)
            replace_text(options.output, text + "\n")
    except (DocumentError, OSError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return USAGE
    streams.show(terminal(comparison, room()))
    return comparison.exit_code


def terminal(comparison: Comparison, width: int) -> str:
    """Return the table, what is in one report alone, and the verdict.

    Args:
        comparison: what came of two reports.
        width: characters in a line that the table must fit.
    """
    lines = [
        *_facts("OLD", comparison.old),
        *_facts("NEW", comparison.new),
        "",
    ]
    if comparison.rows:
        lines += [*_table(comparison.rows, width), ""]
        lines += [*_reasons(comparison.rows), *_notes(comparison.rows)]
    for name, identities in (
        ("OLD", comparison.pairing.only_old),
        ("NEW", comparison.pairing.only_new),
    ):
        lines += [f"  only in {name}: {printable(_named(identity))}" for identity in identities]
    lines += [f"  no figures in NEW: {printable(why)}" for why in comparison.pairing.lost]
    lines += [f"  not comparable: {printable(why)}" for why in comparison.pairing.reasons]
    word, _, rest = comparison.verdict.partition("  ")
    return "\n".join([*lines, f"{word}  {printable(rest)}"])


def _notes(rows: Sequence[Judged]) -> list[str]:
    """Say what the yardstick is, and what may settle ambiguous rows."""
    notes = []
    if any(row.yardstick is not None for row in rows):
        notes.append(
            "  yardstick: what else both runs timed beside the figure, new over old; the one that "
            "slowed most"
        )
    if any(row.verdict is Verdict.AMBIGUOUS for row in rows):
        notes.append(
            "  AMBIGUOUS: run again, on a quieter machine or with a longer --budget; or allow more "
            "with a wider --gate"
        )
    return notes


def share(text: str) -> float:
    """Parse ``5%`` or ``0.05``, for ``argparse``."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(
            f"must be a share between 0 and 1 such as 5% or 0.05, got {text!r}"
        )
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m xllm_kernel.benchmark compare",
        description="Say whether a run is slower than an earlier one of the same cases.",
        epilog="Exit codes: 0 no regression, 1 regression, 2 usage, 3 not comparable, 5 ambiguous.",
        allow_abbrev=False,
    )
    parser.add_argument("old", type=Path, metavar="OLD", help="JSON report of the earlier run")
    parser.add_argument("new", type=Path, metavar="NEW", help="JSON report of the later run")
    parser.add_argument(
        "--gate",
        type=share,
        default=DEFAULT_GATE,
        metavar="SHARE",
        help="slowdown that counts as a regression, such as 5%% or 0.05 (default: 5%%)",
    )
    parser.add_argument("--output", type=Path, metavar="PATH", help="JSON of the comparison")
    return parser


def _facts(name: str, past: Past) -> list[str]:
    facts = (f"{key} {value}".strip() for key, value in shown(past).items())
    return [f"{name}  {printable(past.name)}", *(f"     {printable(fact)}" for fact in facts)]


def _table(rows: Sequence[Judged], width: int) -> list[str]:
    columns, cells = _columns(rows), [list(map(printable, _cells(row))) for row in rows]
    kept, shown, notes = fitted(columns, cells, width)
    return [*drawn(kept, shown), *(f"  {note}" for note in notes)]


def _columns(rows: Sequence[Judged]) -> list[Plain]:
    """Return the columns; those that tell rows apart stay, those that repeat one word may go."""
    regimes = {row.identity.regime for row in rows}
    threads = {row.identity.threads for row in rows}
    return [
        Plain("case", words=True, between="/"),
        Plain("implementation", words=True, between="."),
        Plain("regime", KEPT if len(regimes) > 1 else 1, words=True),
        Plain("threads", KEPT if len(threads) > 1 else 2),
        Plain("old us", 4),
        Plain("new us", 5),
        Plain("ratio [low, high]"),
        Plain("yardstick", 3),
        Plain("verdict", words=True),
    ]


def _cells(row: Judged) -> tuple[str, ...]:
    identity, ratio = row.identity, row.ratio
    return (
        identity.case_id,
        identity.implementation,
        identity.regime,
        NOTHING if identity.threads is None else str(identity.threads),
        number(row.old_us),
        number(row.new_us),
        f"{ratio.middle:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]",
        NOTHING if row.yardstick is None else number(row.yardstick.ratio),
        row.verdict.value,
    )


def _reasons(rows: Sequence[Judged]) -> list[str]:
    """Return each reason once, with the figures that it holds for."""
    where: dict[str, list[str]] = {}
    for row in rows:
        if row.why:
            where.setdefault(row.why, []).append(_named(row.identity))
    return [f"  {printable(why)}: {printable('; '.join(named))}" for why, named in where.items()]


def _row(row: Judged) -> Mapping[str, Any]:
    return {
        **asdict(row.identity),
        "old_us": row.old_us,
        "new_us": row.new_us,
        "ratio": asdict(row.ratio),
        "yardstick": None if row.yardstick is None else asdict(row.yardstick),
        "verdict": row.verdict.value,
        "why": row.why,
    }


def _named(identity: Identity) -> str:
    count = identity.threads
    threads = "" if count is None else f", {count} thread{'s' * (count != 1)}"
    return f"{identity.case_id}, {identity.implementation}, {identity.regime}{threads}"
