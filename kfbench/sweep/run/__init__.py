"""Measure the cells of a sweep (one cell is one measurement) and store their rows."""
