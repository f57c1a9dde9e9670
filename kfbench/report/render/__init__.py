"""Figures and the look of formats (colours, marks)."""
