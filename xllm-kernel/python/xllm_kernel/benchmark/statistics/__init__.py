"""Statistics of timings: summaries, ratios with intervals, verdicts, when to stop, what disturbed.

Pure but for ``machine``, which reads what Linux says; takes no samples itself.
"""

from xllm_kernel.benchmark.statistics.ratios import Ratio, paired, unpaired
from xllm_kernel.benchmark.statistics.summary import median, nearest_rank, summarize
from xllm_kernel.benchmark.statistics.verdicts import Verdict, band, verdict

__all__ = [
    "Ratio",
    "Verdict",
    "band",
    "median",
    "nearest_rank",
    "paired",
    "summarize",
    "unpaired",
    "verdict",
]
