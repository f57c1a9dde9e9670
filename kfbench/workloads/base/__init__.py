"""The interface of workloads."""
