"""Generate the records of a named workload from the tables of its TOML file."""
