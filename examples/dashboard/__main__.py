"""The dashboard as a process of its own; Ctrl-C ends it."""

from __future__ import annotations

import sys

import uvicorn

from examples.dashboard.app import application

source, target = sys.argv[1:]
uvicorn.run(application(source, target), log_level="warning")
