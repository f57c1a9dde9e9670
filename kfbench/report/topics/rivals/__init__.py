"""Sections about existing containers (Parquet, Arrow IPC, Avro, Vortex) in the place of v2's records.

Stored runs have rows of Lance, too.
"""
