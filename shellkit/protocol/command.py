"""The command's text, from what a caller gives to what a shell gets (contract B2). Executors and the tool call it."""

from __future__ import annotations

from ..errors import InvalidCommand

__all__ = ["MAX_COMMAND_BYTES", "encode_command"]

#: Longest command (contract B3).
MAX_COMMAND_BYTES = 10 * 1024 * 1024


def encode_command(command: object) -> bytes:
    """Return what the shell gets: UTF-8, CRLF line ends as LF, a blank before what could be taken for an option.

    Raises:
        TypeError: it is not a string.
        InvalidCommand: no shell could read it.
    """
    if not isinstance(command, str):
        raise TypeError(f"command must be a str, not {type(command).__name__}; join an argv list with shlex.join()")
    if "\0" in command:
        raise InvalidCommand("command contains a NUL character, which no shell can read; remove it")
    try:
        text = command.replace("\r\n", "\n").encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidCommand(
            f"command contains a lone surrogate at index {error.start}, which is no character; "
            "decode the text it came from as UTF-8"
        ) from None
    if len(text) > MAX_COMMAND_BYTES:
        raise InvalidCommand(
            f"command is {len(text)} bytes long, more than {MAX_COMMAND_BYTES}; write it to a file and run that"
        )
    # `eval` and `-c` would read "-x" and "+x" as options of their own, and not every shell knows `--` there.
    return b" " + text if text.startswith((b"-", b"+")) else text
