"""Sections about existing containers (Parquet, Arrow IPC, Avro, Vortex; in stored runs Lance) in the place of v2's records."""
