# SPDX-License-Identifier: Apache-2.0
"""The SDK for programs with an event loop."""
