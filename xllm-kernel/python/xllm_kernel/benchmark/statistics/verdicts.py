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
# the noise floor, the less of what the two sides' processes differ by, is a draw of its own: a
# multiple of it alone would have to be so large that it hid a slowdown of 10 %. So a fixed part is
# added. Below 1 %, so that a clock without noise shows a difference of 1 %.
LEAST = 0.0095
# SAME needs the former below 0.95 % + 2 * the latter, which in simulations fails in 4 % of runs,
# and in fewer as the noise floor's interval comes on top (2 % where that is 0.3 %).
_TIMES_NOISE_OF_SAME = 2.0
# SLOWER is said of an interval that has left chance behind already: with 0.95 % + 1 * the noise it
# is wrong of equal code in 0.5 to 0.9 % of simulated runs, and right of 10 % in 95 % of them as
# long as an interval reaches no further than 2.6 % from its middle, with 2 * only up to 1.6 %.
_TIMES_NOISE = 1.0
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


def band(noise: Ratio, times: float = _TIMES_NOISE) -> float:
    """Return by which share two times must differ to be told apart.

    Args:
        noise: of two processes that run the same code.
        times: how often its further end counts.
    """
    return LEAST + times * (max(noise.high, 1.0 / noise.low) - 1.0)


def verdict(ratio: Ratio, noise: Ratio) -> Verdict:
    """Say what the ratio of a candidate's time over its baseline's means.

    Args:
        ratio: below 1 is faster.
        noise: of two processes that run the same code.
    """
    narrow, wide = band(noise), band(noise, _TIMES_NOISE_OF_SAME)
    far = ratio.high < 1.0 / _WIDEST or ratio.low > _WIDEST
    if far or ratio.high <= _WIDEST * ratio.low:
        if ratio.high < 1.0 / (1.0 + narrow):
            return Verdict.FASTER
        if ratio.low > 1.0 + narrow:
            return Verdict.SLOWER
        inside = 1.0 / (1.0 + wide) <= ratio.low and ratio.high <= 1.0 + wide
        if inside and wide <= _LARGEST_SAME:
            return Verdict.SAME
    return Verdict.AMBIGUOUS
