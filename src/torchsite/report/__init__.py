"""Tables and figures, drawn from result files."""
