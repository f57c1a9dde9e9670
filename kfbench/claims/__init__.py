"""Figures that Kafka's proposals publish, each beside the bytes of the real formats."""
