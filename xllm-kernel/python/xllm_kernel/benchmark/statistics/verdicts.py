"""From an interval of a ratio, and the noise floor, to a verdict; pure.

Knows nothing of how times were taken.
"""

from __future__ import annotations

from enum import Enum

from xllm_kernel.benchmark.statistics.ratios import Ratio

# Two processes that run the same code differ by where their memory lies: a share of some 0.5 % of
# the time, fixed for each of them, that no interval within a run shows; one in twenty is slower by
# up to a fifth. Of both sides the quicker of two processes counts, so that only two slow ones of
# one side, 1 run in 400, mislead. What remains of the 0.5 % is 0.58 % between the quicker two, and
# the noise floor, the less of what the two sides' processes differ by, is a draw of its own: with
# noise * k for a band, no small k would do. So a fixed part is added: SAME needs the former below
# 0.95 % + 2 * the latter, which in simulations fails in 4 % of runs, and in fewer as the noise
# floor's interval comes on top (2.2 % where that is 0.3 %). Of 10 % there remain 9.5 % - 0.95 % =
# 8.55 %: SLOWER as long as the floor reaches no further than about 3.5 %, for which noisy machines
# need more rounds. Below 1 %, so that a clock without noise shows a difference of 1 %.
LEAST = 0.0095
_TIMES_NOISE = 2.0
# Where a slowdown of 10 % would be inside the band, "the same" would say nothing worth knowing.
_LARGEST_SAME = 0.1
# An interval from one value to twice that value says that nothing is known, unless even its nearer
# end is further away than that.
_WIDEST = 2.0


class Verdict(Enum):
    """What a ratio of times means."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    SAME = "SAME"
    AMBIGUOUS = "AMBIGUOUS"


def band(noise: Ratio, least: float = LEAST) -> float:
    """Return by which share two times may differ and still be the same.

    Args:
        noise: of two processes that run the same code.
        least: the band of a machine without noise.
    """
    return least + _TIMES_NOISE * (max(noise.high, 1.0 / noise.low) - 1.0)


def verdict(ratio: Ratio, band: float) -> Verdict:
    """Say what the ratio of a candidate's time over its baseline's means.

    Args:
        ratio: below 1 is faster.
        band: as a share, from the noise floor.
    """
    far = ratio.high < 1.0 / _WIDEST or ratio.low > _WIDEST
    if far or ratio.high <= _WIDEST * ratio.low:
        if ratio.high < 1.0 / (1.0 + band):
            return Verdict.FASTER
        if ratio.low > 1.0 + band:
            return Verdict.SLOWER
        inside = 1.0 / (1.0 + band) <= ratio.low and ratio.high <= 1.0 + band
        if inside and band <= _LARGEST_SAME:
            return Verdict.SAME
    return Verdict.AMBIGUOUS
