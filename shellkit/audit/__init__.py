"""The audit log: what was asked, who decided, what came of it; one JSON line each, chained by hash (contract H9)."""

from __future__ import annotations

from .log import AuditLog
from .record import AuditEntry, AuditError
from .redact import redact
from .verify import AuditProblem, VerifyReport, records, verify

__all__ = ["AuditEntry", "AuditError", "AuditLog", "AuditProblem", "VerifyReport", "records", "redact", "verify"]
