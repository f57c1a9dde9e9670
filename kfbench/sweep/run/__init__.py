"""Run the cells of a sweep and store their rows."""
