"""Sections about existing containers (Parquet, Arrow IPC, Avro, Vortex, Lance) in the place of v2's records."""
