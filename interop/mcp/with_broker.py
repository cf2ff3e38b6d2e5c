# SPDX-License-Identifier: Apache-2.0
"""Runs a command beside a broker: TASUKI_URL is where it is, and so is every {url} in it."""

from __future__ import annotations

import os
import subprocess
import sys

from broker import TASUKI, Broker

with Broker() as broker:
    environment = {**os.environ, "TASUKI_URL": broker.url, "TASUKI_BIN": TASUKI}
    command = [word.replace("{url}", broker.url) for word in sys.argv[1:]]
    sys.exit(subprocess.run(command, env=environment, check=False).returncode)
