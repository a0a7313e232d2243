"""`true` in a fresh shell for every call, against `subprocess.run`."""

from __future__ import annotations

import subprocess
import sys

from shellkit import LocalExecutor

from .bare import BASH
from .measure import Row, alternate, report

_CALLS = 100


def main() -> bool:
    """Measure and report."""
    with LocalExecutor(shell="bash", mode="stateless").sync() as shell:
        candidates = {
            "shellkit": lambda: shell.run("true"),
            "subprocess": lambda: subprocess.run([*BASH, "-c", "true"], capture_output=True, check=True),
        }
        times = alternate(candidates, calls=_CALLS)
    detail = ", ".join(f"{name} {times.median(name) * 1e6:.0f} us" for name in candidates)
    row = Row(
        what="true, stateless",
        yardstick='subprocess.run(["bash", "--noprofile", "--norc", "-c", "true"], capture_output=True)',
        value=times.ratio("shellkit", "subprocess"),
        bound=1.0,
        aim=0.4,
        detail=f"{detail}; rounds {times.spread('shellkit', 'subprocess')}",
    )
    return report("stateless", [row])


if __name__ == "__main__":
    sys.exit(not main())
