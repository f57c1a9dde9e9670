"""The tables and sentences of a report, one module per topic."""
