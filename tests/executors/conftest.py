"""A way to talk to programs of an executor that is closed when the test ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from shellkit import LocalExecutor

Talk = Callable[..., Any]


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    """Return a function that runs a coroutine function with a bash executor in `tmp_path`, and closes that."""

    def run(conversation: Callable[[LocalExecutor], Awaitable[Any]], **options: Any) -> Any:
        async def main() -> Any:
            given = {"shell": "bash", "workdir": tmp_path, "confinement": "off", **options}
            async with LocalExecutor(**given) as executor:
                return await conversation(executor)

        return asyncio.run(main())

    return run
