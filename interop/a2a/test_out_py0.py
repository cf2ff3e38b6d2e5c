# SPDX-License-Identifier: Apache-2.0
"""a2a-sdk 0.3.26 as a server: protocol 0.3 over JSON-RPC."""

from outgoing import Stories

__all__ = ["Stories"]
