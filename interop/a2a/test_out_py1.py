# SPDX-License-Identifier: Apache-2.0
"""a2a-sdk 1.3.0 as a server: protocol 1.0, both bindings."""

from outgoing import HttpJson, Stories

__all__ = ["HttpJson", "Stories"]
