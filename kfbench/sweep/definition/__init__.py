"""The TOML file of a sweep and the cells that it means."""
