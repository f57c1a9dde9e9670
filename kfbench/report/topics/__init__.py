"""The sections of a report, one module per topic. Each module computes tables, sentences and figures."""
