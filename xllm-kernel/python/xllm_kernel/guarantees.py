"""The promises that an implementation may make beyond its contract: a closed list.

Each has a name, by which a declaration states it and ``numerics`` tries it, and a sentence for
people. Imports nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

# Rows are what an operation's arguments and results count in their leading dimensions. Everything
# holds in the default floating-point environment: a process that flushes subnormals may flush them
# on some threads and not on others.
GUARANTEES: Mapping[str, str] = {
    "batch_invariant": "a row's bits do not depend on the other rows, their number or its place",
    "thread_invariant": "a row's bits do not depend on the number of threads",
    "layout_invariant": "a row's bits do not depend on strides or on the alignment of its address",
    "level_invariant": "bits do not depend on the SIMD level",
    "repeatable": "repeated calls give the same bits",
    "subnormals_kept": "subnormal values are kept, unless the process flushes them",
    "canonical_nan": "every NaN of a result is the positive quiet NaN without payload",
    "equals_parts": "bits are those of the simpler operations, by the same solution, that it is "
    "made of",
}
