"""`python -m benchmarks [NAME...]`: run all benchmarks but the soak, or those named; non-zero if a bound is missed.

Each is a process of its own, so that none inherits another's memory, and can be run alone:
`python -m benchmarks.latency`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: In the order of contract K, then what it does not name. The soak takes ten minutes and has to be asked for.
NAMES = (
    "latency",
    "stateless",
    "throughput",
    "recovery",
    "many_sessions",
    "import_time",
    "gate",
    "spill",
    "programs",
    "program_cycles",
    "agent",
)


def main(names: list[str]) -> int:
    unknown = set(names) - {*NAMES, "soak"}
    if unknown:
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join((*NAMES, 'soak'))}")
        return 2
    root = Path(__file__).parents[1]
    failed = [
        name
        for name in names or NAMES
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=root, check=False).returncode
    ]
    print(f"\nbenchmarks: {f'bound missed in {chr(44).join(failed)}' if failed else 'all within their bounds'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
