"""What is measured of any model and any explainer, and kept as results."""
