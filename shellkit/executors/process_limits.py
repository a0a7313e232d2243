"""`ProcessLimits`: how many programs an executor keeps, and for how long. A value; `Programs` keeps to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

__all__ = ["ProcessLimits"]

_SECONDS: Callable[[Any, attrs.Attribute[Any], Any], None] = attrs.validators.optional(attrs.validators.gt(0))


@attrs.frozen(kw_only=True)
class ProcessLimits:
    """How many programs an executor keeps, and for how long.

    Attributes:
        count: programs that are kept; one more makes the least recently used one go, an ended one first.
        protected: the most recently used ones, which never go that way.
        life: seconds that a program may run; None for no limit.
        idle: seconds that nobody may write to or look at a program; None for no limit.
    """

    count: int = attrs.field(default=64, validator=attrs.validators.ge(1))
    protected: int = attrs.field(default=8, validator=attrs.validators.ge(1))
    life: float | None = attrs.field(default=86400.0, validator=_SECONDS)
    idle: float | None = attrs.field(default=7200.0, validator=_SECONDS)
