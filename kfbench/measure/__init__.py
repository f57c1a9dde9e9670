"""Measurement: encode, verify and time formats, and return the numbers as rows of the result table.

This package does not know the catalogue of workloads. Its input is records.
"""
