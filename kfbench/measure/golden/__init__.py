"""Vectors that Apache Kafka's own classes wrote, checked against kfbench."""
