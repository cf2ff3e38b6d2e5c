# SPDX-License-Identifier: Apache-2.0
"""Holds a server against the handoff protocol, through this SDK.

    python -m tasuki.conformance --target http://127.0.0.1:8788

The checks are those of `tasuki-tools conformance suite`. What the SDK has a method for is done by
that method; the rest, such as bodies that are broken on purpose, goes through the SDK's own way of
sending requests. The report says how much was which.
"""

from __future__ import annotations

from ._runner import Failure, Outcome, Report, load, run

__all__ = ["Failure", "Outcome", "Report", "load", "run"]
