"""Judges pairs of figures of two runs: slower than the gate, not slower, or not to be told; pure.

Two runs share no rounds, so that everything that changed between them is in their ratio: the code,
and the machine. A slowdown therefore has to pass four hurdles before it is called one:

- *It matters.* The 95 % interval of the ratio lies above the gate. The interval has the noise
  between runs in it, not alone that of the samples: where memory lies differs from process to
  process and stays the same within one (Mytkowicz et al., ASPLOS 2009). That noise is the largest
  of three: the spread of all rows' ratios (of the closest half, so that rows which did change do
  not count), drawn towards a usual one where rows are few; each report's own A/A of this row; and
  how far medians of parts of each run differ.
- *It is real.* Many rows are judged at once, and 24 intervals of 95 % leave out one by themselves.
  So the ratio also has to exceed 1 at a level that errs in one comparison of a hundred of unchanged
  code, over all rows together (Bonferroni).
- *The machine did not do it.* Something that did not change was timed beside the row in both runs:
  the ceilings' passes, the baseline, the empty callable. What is left of the ratio when the slowest
  of these is divided out has to pass both hurdles too.
- *Both figures are stable.* A disturbed one proves nothing.

Not slower is easier: others who disturb a run only ever add time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist, variance

from xllm_kernel.benchmark.past.documents import Figure, Identity
from xllm_kernel.benchmark.past.pairing import Pair
from xllm_kernel.benchmark.statistics import Ratio, Verdict, median, unpaired

# What medians of one build are taken to differ by from run to run until their rows show otherwise,
# as a standard deviation of logarithms, and how many rows' worth of trust that gets.
_USUAL = 0.02
_TRUST = 4
_FALSE_ALARMS = 0.01
_NORMAL = 1.96
_PARTS = 5
# How far a variance of so few medians may exceed its expectation by chance.
_CHANCE = 2.0
# Of the values of a normal distribution, the closest half spans so many standard deviations.
_HALF_SPANS = 1.349
_NO_YARDSTICK = "nothing that did not change was timed beside it, so the machine may have moved"
# Numbers of replays that differ by less cost an empty callable the same.
_ALIKE = 1.05
# Of a normal distribution, the standard deviation over the median absolute one.
_DEVIATION = 1.4826


@dataclass(frozen=True, slots=True)
class Yardstick:
    """Something that did not change between the runs, and how its time did.

    Attributes:
        name: what was timed.
        ratio: its time in the new run over that in the old.
    """

    name: str
    ratio: float


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of one pair.

    Attributes:
        identity: whose.
        old_us: median of the old run.
        new_us: median of the new run.
        ratio: new over old; the interval holds the noise between runs.
        yardstick: the one that slowed most; None where the reports have none.
        verdict: against the gate.
        why: what decided, unless it is plain.
    """

    identity: Identity
    old_us: float
    new_us: float
    ratio: Ratio
    yardstick: Yardstick | None
    verdict: Verdict
    why: str


def judge(pairs: Sequence[Pair], gate: float) -> list[Judged]:
    """Judge all pairs of a comparison together, in their order.

    Args:
        pairs: of two comparable reports.
        gate: the slowdown that matters, as a share.
    """
    sampled = [unpaired(pair.new.samples, pair.old.samples) for pair in pairs]
    between = _between_runs([math.log(ratio.middle) for ratio in sampled])
    level = NormalDist().inv_cdf(1.0 - _FALSE_ALARMS / max(1, len(pairs)))
    idle = _idle(pairs)
    judged = []
    for pair, ratio in zip(pairs, sampled, strict=True):
        least, most = (math.hypot(_error(ratio), max(between, own)) for own in _own_noise(pair))
        yardstick = _slowest(pair, ratio, idle)
        scale = _Scale(math.log(ratio.middle), most, math.log1p(gate), level)
        verdict, why = _decide(pair, scale, least, yardstick)
        judged.append(
            Judged(
                pair.identity,
                median(pair.old.samples),
                median(pair.new.samples),
                Ratio(ratio.middle, math.exp(scale.low), math.exp(scale.high)),
                yardstick,
                verdict,
                why,
            )
        )
    return judged


@dataclass(frozen=True, slots=True)
class _Scale:
    """A ratio's logarithm, its standard deviation, the gate's logarithm, and the level of proof."""

    middle: float
    noise: float
    gate: float
    level: float

    @property
    def low(self) -> float:
        return self.middle - _NORMAL * self.noise

    @property
    def high(self) -> float:
        return min(self.middle + _NORMAL * self.noise, math.log(1e6))

    def slower(self, moved: float) -> bool:
        """Say whether the code is slower, with a movement of the machine and without.

        Args:
            moved: logarithm of the yardstick's ratio. A quicker machine is believed up to the gate.
        """
        left = self.middle - max(moved, -self.gate)
        least = min(left, self.middle)
        matters = left - _NORMAL * self.noise > self.gate and least > self.gate
        return matters and least - self.level * self.noise > 0.0

    def mirrored(self) -> _Scale:
        """Return the same of the old run over the new one."""
        return _Scale(-self.middle, self.noise, self.gate, self.level)


def _decide(
    pair: Pair, scale: _Scale, least_noise: float, yardstick: Yardstick | None
) -> tuple[Verdict, str]:
    moved = 0.0 if yardstick is None else math.log(yardstick.ratio)
    unstable = _unstable(pair)
    if scale.slower(moved):
        if unstable or yardstick is None:
            return Verdict.AMBIGUOUS, unstable or _NO_YARDSTICK
        return Verdict.SLOWER, ""
    if scale.slower(0.0):
        why = f"the machine moved too: {_told(yardstick)}"
        return Verdict.AMBIGUOUS, unstable or why
    if pair.old.unstable:
        # What made it slow then may hide what is slow now.
        return Verdict.AMBIGUOUS, unstable
    left = scale.middle - max(0.0, moved)
    if left > scale.gate:
        return Verdict.AMBIGUOUS, unstable or "above the gate, but within noise"
    if _NORMAL * least_noise > math.log(2.0 * math.exp(scale.gate) - 1.0) - scale.gate:
        return Verdict.AMBIGUOUS, unstable or "noise would hide a slowdown of twice the gate"
    if moved < -scale.gate and scale.middle - moved > scale.gate:
        return Verdict.AMBIGUOUS, f"a quicker machine may hide a slowdown: {_told(yardstick)}"
    quicker = scale.mirrored()
    if quicker.slower(-moved) and quicker.slower(0.0):
        return Verdict.FASTER, unstable
    return Verdict.SAME, unstable


def _told(yardstick: Yardstick | None) -> str:
    return "" if yardstick is None else f"{yardstick.name} x {yardstick.ratio:.3f}"


def _unstable(pair: Pair) -> str:
    sides = (("OLD", pair.old), ("NEW", pair.new))
    return "; ".join(f"{n} unstable: {', '.join(f.unstable)}" for n, f in sides if f.unstable)


def _error(ratio: Ratio) -> float:
    """Return a standard deviation of logarithms from a 95 % interval."""
    if ratio.low <= 0.0:
        return math.inf
    return math.log(max(ratio.high / ratio.middle, ratio.middle / ratio.low)) / _NORMAL


def _between_runs(logs: Sequence[float]) -> float:
    """Return the noise between runs that the rows show together.

    Args:
        logs: of all rows' ratios.
    """
    ordered, half = sorted(logs), (len(logs) + 1) // 2
    spans = [b - a for a, b in zip(ordered, ordered[max(0, half - 1) :], strict=False)]
    seen = min(spans, default=0.0) / _HALF_SPANS
    total = _TRUST + len(logs)
    return math.sqrt((_TRUST * _USUAL**2 + len(logs) * seen**2) / total)


def _own_noise(pair: Pair) -> tuple[float, float]:
    """Return the least and the most noise that the reports show of this row alone.

    A process that is slow by itself makes its report's A/A wide, and not its figure, which is the
    quicker process's. So the wider of two forbids to call a row slower, and the narrower decides
    whether a slowdown could have been seen.
    """
    sides = (pair.old, pair.new)
    parts = math.hypot(*(_between_parts(figure.samples) for figure in sides))
    floors = [_floor(figure) for figure in sides]
    return max(parts, min(floors)), max(parts, *floors)


def _floor(figure: Figure) -> float:
    """Return what a report's own A/A shows, if it has one."""
    beside: Mapping[str, object] = figure.against or figure.figures
    floor = beside.get("noise_floor")
    if not isinstance(floor, Mapping):
        return 0.0
    low, high = float(floor["low"]), float(floor["high"])
    return math.inf if low <= 0.0 else math.log(max(high, 1.0 / low)) / _NORMAL


def _between_parts(samples: Sequence[float]) -> float:
    """Return by how much medians of consecutive parts of a run differ, if not by chance."""
    count = len(samples)
    if count < 2 * _PARTS:
        return 0.0
    cuts = [count * part // _PARTS for part in range(_PARTS + 1)]
    parts = [[math.log(sample) for sample in samples[a:b]] for a, b in pairwise(cuts)]
    middles = sorted(median(part) for part in parts)
    apart = [abs(s - middle) for part in parts for middle in [median(part)] for s in part]
    # A median of n values of a normal distribution has pi / 2n of their variance.
    error = math.pi / 2 * (_DEVIATION * median(apart)) ** 2 / (count / _PARTS)
    # A spell within one part of five hardly moves the median of all.
    beyond = min(variance(middles[1:]), variance(middles[:-1])) - error
    return math.sqrt(beyond) if beyond > _CHANCE * error else 0.0


def _idle(pairs: Sequence[Pair]) -> Yardstick | None:
    """Return what became of the empty callable: one figure a run, for a row's own is coarse.

    Rows whose samples have other numbers of replays say nothing: what a sample costs by itself is
    in each of its calls, and slower code has fewer of them.
    """
    logs = []
    for pair in pairs:
        old, new = (_empty(figure) for figure in (pair.old, pair.new))
        replays = [figure.figures.get("iterations", 1) for figure in (pair.old, pair.new)]
        if old and new and max(replays) <= _ALIKE * min(replays):
            logs.append(math.log(new / old))
    return Yardstick("empty callable", math.exp(median(logs))) if logs else None


def _empty(figure: Figure) -> float:
    column = (figure.figures.get("empty_callable") or {}).get("wall_us") or {}
    return float(column.get("median", 0.0))


def _slowest(pair: Pair, ratio: Ratio, idle: Yardstick | None) -> Yardstick | None:
    """Return the yardstick of a row that slowed most."""
    found = [] if idle is None else [idle]
    old, new = (
        (figure.figures.get("roofline") or {}).get("ceilings_us") or {}
        for figure in (pair.old, pair.new)
    )
    found += [
        Yardstick(f"ceiling {name}", new[name] / us)
        for name, us in old.items()
        if us > 0.0 and new.get(name, 0.0) > 0.0
    ]
    before, after = pair.old.against, pair.new.against
    if (
        before.get("ratio")
        and after.get("ratio")
        and before.get("baseline") == after.get("baseline")
    ):
        moved = ratio.middle * before["ratio"]["middle"] / after["ratio"]["middle"]
        found.append(Yardstick(f"baseline {before.get('baseline')}", moved))
    return max(found, key=lambda yardstick: yardstick.ratio, default=None)
