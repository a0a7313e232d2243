"""`LinePattern`: a regular expression that a model may choose, matched in linear time (contract E5).

Python's `re` can take exponential time, and holds the interpreter's lock while it does, so that no thread and no
time-out could stop it. Rust's engine, which comes with pydantic, cannot: it has no look-around and no backreferences.
"""

from __future__ import annotations

import re

__all__ = ["LinePattern"]

#: What makes a pattern mean something else in a block of lines than in one line.
_OF_ONE_LINE = re.compile(r"\\[Az]|\(\?[A-Za-z]*(?:-|R)")


class LinePattern:
    """Finds lines, without their line end.

    Args:
        pattern: in the syntax of Rust's `regex` crate, which is Python's without look-around and backreferences.

    Raises:
        TypeError: `pattern` is no string.
        ValueError: it is none that the engine takes; the message says why.
    """

    def __init__(self, pattern: str) -> None:
        if not isinstance(pattern, str):
            raise TypeError(f"pattern must be a regular expression as str, not {type(pattern).__name__}")
        # Imported late: pydantic_core takes 50 ms, and most programs never search.
        from pydantic_core import SchemaError, SchemaValidator, core_schema

        def matcher(source: str) -> SchemaValidator:
            return SchemaValidator(core_schema.str_schema(pattern=source, regex_engine="rust-regex"))

        try:
            line = matcher(pattern)
            # `^` and `$` at line ends, so that a block without a match holds no line with one: 20 GB/s.
            block = line if _OF_ONE_LINE.search(pattern) else matcher(f"(?m){pattern}")
        except SchemaError as error:
            why = str(error).partition("SchemaError:")[2].strip()
            raise ValueError(
                f"the pattern is no regular expression that can be searched for: {why} (linear-time syntax: no "
                "look-around, no backreferences)"
            ) from None
        self._matches = line.isinstance_python
        self._may_match = None if block is line else block.isinstance_python

    def matches(self, line: str) -> bool:
        """Return whether the pattern matches anywhere in the line."""
        return self._matches(line)

    def may_match(self, block: str) -> bool:
        """Return False if none of the lines in `block`, ended by newlines, matches."""
        return self._may_match is None or self._may_match(block)
