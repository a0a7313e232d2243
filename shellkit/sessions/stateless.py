"""A session that gives every command a fresh shell (placeholder until written)."""
from .base import Session
class StatelessSession(Session):  # type: ignore
    pass
