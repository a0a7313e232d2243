"""For those who test executors: the contract as a suite of tests, and scripted shells for timing corners.

`ExecutorContract` is what every executor promises; pytest collects it from a subclass:

    class TestMine(ExecutorContract):
        def make_executor(self, **options):
            return MyExecutor(**options)

`ScriptedExecutor` runs real sessions on shells that follow a script, so that a report in twenty pieces, a shell
that never answers or one that dies at the worst moment can be had at will. pytest is imported by the tests only.
`pytest.register_assert_rewrite("shellkit.testing.contract")` before the import makes failures tell more.

For those who write agents, `shellkit.testing.scripted_model` is a model that follows a script, behind the OpenAI API:
`shellkit.testing.loopback` serves it anywhere, `shellkit.testing.openai_server` is a pytest fixture.
"""

from .contract import ExecutorContract
from .scripted import (
    Await,
    Exit,
    Expect,
    Hang,
    Report,
    ScriptedExecutor,
    ScriptedProcess,
    Send,
    Step,
)

__all__ = [
    "Await",
    "ExecutorContract",
    "Exit",
    "Expect",
    "Hang",
    "Report",
    "ScriptedExecutor",
    "ScriptedProcess",
    "Send",
    "Step",
]
