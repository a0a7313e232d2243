"""Figures of contract K: how fast shellkit is, as ratios to a yardstick measured in the same run."""
