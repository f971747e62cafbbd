# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
