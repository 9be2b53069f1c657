"""How a device's results were obtained, and what results of such a kind do not show."""

from __future__ import annotations

SIMULATED = "simulated"

_DISCLAIMERS = {
    SIMULATED: (
        "simulated: ran on a stand-in for the device; it shows calls, their order and lifetimes, "
        "and is no evidence of accuracy or performance"
    ),
}


def disclaimer(evidence: str | None) -> str | None:
    """Return what must be said of results that stand for no device; None where they stand for one.

    Reports show it. Whatever shows, ranks or compares times refuses rows that have one.

    Args:
        evidence: a platform's word, or None where no device was reached.
    """
    return None if evidence is None else _DISCLAIMERS.get(evidence)
