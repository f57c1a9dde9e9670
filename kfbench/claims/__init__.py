"""Figures that Kafka's proposals publish, compared with the bytes of the real formats."""
