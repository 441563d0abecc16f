"""Models that must know object from scene: BAM (appendix)."""
