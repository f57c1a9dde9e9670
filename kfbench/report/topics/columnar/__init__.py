"""columnar, this project's research format: its rows, tables and section."""
