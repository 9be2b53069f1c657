"""The operators that have something to be compared with; each has a file of its own here."""

from __future__ import annotations

from peers import fused_add_rms_norm, rms_norm

OPERATIONS = {o.name: o for o in (rms_norm.OPERATION, fused_add_rms_norm.OPERATION)}
