"""Generate the payload of named workloads from text templates with placeholders (slots)."""
