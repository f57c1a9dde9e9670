"""Payload of named workloads: texts with slots."""
