"""The sampler: notes where the time of each CPU went, again and again, until it is ended.

This file is run as a program beside a measurement, on both hosts::

    cpu_sampler.py FILE PERIOD_S LIFETIME_S

It appends one JSON object a line to FILE: ``at`` (seconds since 1970), ``monotonic`` (seconds) and
``stat``, the CPU lines of ``/proc/stat`` and its btime as they are. Reading and judging them is
done elsewhere. It ends by itself after LIFETIME_S, so that a forgotten one does not stay.
"""

import json
import sys
import time

KEPT = ("cpu", "btime")


def sample():
    """One reading of /proc/stat, and the middle of the clocks read before and after it: a process
    that loses the CPU in between moves both alike."""
    began = time.time(), time.monotonic()
    with open("/proc/stat") as handle:
        lines = [line for line in handle if line.startswith(KEPT)]
    monotonic, real = time.monotonic(), time.time()
    return {
        "at": round((began[0] + real) / 2, 4),
        "monotonic": round((began[1] + monotonic) / 2, 4),
        "stat": "".join(lines),
    }


def main(argv):
    """Entry point of the program."""
    path, period_s, lifetime_s = argv[0], float(argv[1]), float(argv[2])
    began = time.monotonic()
    count = 0
    with open(path, "w", buffering=1) as handle:
        while time.monotonic() - began < lifetime_s:
            handle.write(json.dumps(sample()) + "\n")
            count += 1
            # Against the beginning, not against the last one: a late sample moves no other.
            time.sleep(max(0.0, began + count * period_s - time.monotonic()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
