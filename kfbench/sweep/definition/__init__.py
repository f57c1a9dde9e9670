"""Read a sweep's TOML file, check it, and list its cells. A cell is the recipe of one measurement."""
