# SPDX-License-Identifier: GPL-2.0-or-later
"""Order a reboot of a host and see it through. Knows nothing of Ansible."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ansible_collections.crossover.lab.plugins.plugin_utils.new_connection import Answer

BOOT_ID = "/proc/sys/kernel/random/boot_id"
# The order counts in the boot that it was meant for only, so that it may be repeated.
ORDER = f'[ "$(cat {BOOT_ID})" = "$0" ] && exec "$@"'
ATTEMPT_S = 10.0
PAUSE_S = 1.0

Ask = Callable[[list[str], float], Answer]


class Rebooting:
    """One host's reboots.

    ``ask`` runs a command (argv) on the host over a new connection within some seconds;
    ``clock`` and ``sleep`` are the monotonic time and a pause.
    """

    def __init__(
        self,
        ask: Ask,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._ask, self._clock, self._sleep = ask, clock, sleep
        self.said = "no answer"

    def reboot(self, order: Sequence[str], boot_id: str, limit_s: float) -> float | None:
        """Give the ``order`` in the boot ``boot_id`` and wait for a login in another boot.

        Returns the seconds that it took, None if there was none within ``limit_s``.
        """
        start = self._clock()
        taken = False
        while self._clock() - start < limit_s:
            if not taken:
                answer = self._ask(["/bin/sh", "-c", ORDER, boot_id, *order], ATTEMPT_S)
                taken = answer.reached and answer.code == 0
            self._sleep(PAUSE_S)
            answer = self._ask(["cat", BOOT_ID], ATTEMPT_S)
            self.said = answer.said or self.said
            found = answer.out.strip()
            if answer.reached and answer.code == 0 and found and found != boot_id:
                return round(self._clock() - start, 1)
        return None
