"""Trains nothing, and reports it as a training script does. Usage: report_loop.py RUN"""

import os
import sys

from outlay_client import Tracker

SERVER, KEY = os.environ["OUTLAY_SERVER"], os.environ.get("OUTLAY_API_KEY")
TOKENS_A_STEP = 4_194_304

with Tracker(SERVER, sys.argv[1], KEY, accelerators=64) as run:
    for step in range(1001):
        loss = 2.0 + 8.0 / (1 + step / 100)  # your step
        if step % 50 == 0:
            run.progress(step, tokens_done=step * TOKENS_A_STEP, loss=loss, mfu=0.41)
        if step % 1000 == 0:
            run.evaluation("benchmark", 0.48, step=step, samples=1000)
