# SPDX-License-Identifier: Apache-2.0
# Made by tools/generate.py from _async/__init__.py. Do not edit.
"""The SDK for programs with an event loop."""
