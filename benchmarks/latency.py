"""`true` in a persistent bash, start to result: against the fastest peer, and against a bare loop."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from typing import Any

from shellkit import LocalExecutor

from .bare import BareBash, BareEcho
from .measure import Row, Times, alternate, alternate_async, report

_CALLS = 400
_PEER = "Anthropic SDK's BashSession.exec"
_LOOP = "the same lines in a blocking read loop"


async def _measure_async(bare: BareBash) -> tuple[Times, str]:
    candidates: dict[str, Any] = {"loop": bare.run_true}
    peer, why_not = None, ""
    try:
        from anthropic.lib.tools.agent_toolset import BashSession

        peer = await BashSession.start(tempfile.gettempdir())
    except ImportError as error:
        why_not = f"pip install 'shellkit[bench]' to compare ({error})"
    async with LocalExecutor(shell="bash") as shell:

        async def run_shellkit() -> None:
            await shell.run("true")

        candidates["shellkit"] = run_shellkit
        if peer is not None:
            session = peer

            async def run_peer() -> None:
                await session.exec("true")

            candidates["peer"] = run_peer
        times = await alternate_async(candidates, calls=_CALLS)
    if peer is not None:
        await peer.close()
    return times, why_not


def main() -> bool:
    """Measure and report."""
    bare, echo = BareBash(), BareEcho()
    over_loop, why_not = asyncio.run(_measure_async(bare))
    with LocalExecutor(shell="bash").sync() as shell:
        candidates = {"sync": lambda: shell.run("true"), "loop": bare.run_true, "echo": echo.run_echo}
        blocking = alternate(candidates, calls=_CALLS)
    bare.close()
    echo.close()

    def micro(times: Times, *names: str) -> str:
        return ", ".join(f"{name} {times.median(name) * 1e6:.0f} us" for name in names)

    peer = Row(what="true, async", yardstick=_PEER, value=None, bound=1.0, aim=0.6, detail=why_not)
    if not why_not:
        value = over_loop.ratio("shellkit", "peer")
        detail = f"{micro(over_loop, 'shellkit', 'peer')}; rounds {over_loop.spread('shellkit', 'peer')}"
        peer = Row(what="true, async", yardstick=_PEER, value=value, bound=1.0, aim=0.6, detail=detail)
    rows = [
        peer,
        Row(
            what="true, async",
            yardstick=_LOOP,
            value=over_loop.ratio("shellkit", "loop"),
            bound=2.0,
            aim=1.5,
            detail=f"{micro(over_loop, 'shellkit', 'loop')}; rounds {over_loop.spread('shellkit', 'loop')}",
        ),
        Row(
            what="true, sync()",
            yardstick=_LOOP,
            value=blocking.ratio("sync", "loop"),
            bound=1.5,
            aim=1.2,
            detail=f"{micro(blocking, 'sync', 'loop')}; rounds {blocking.spread('sync', 'loop')}",
        ),
        Row(
            what="true, sync()",
            yardstick="echo on a bare bash pipe",
            value=blocking.ratio("sync", "echo"),
            detail=micro(blocking, "echo"),
        ),
    ]
    return report("latency", rows)


if __name__ == "__main__":
    sys.exit(not main())
