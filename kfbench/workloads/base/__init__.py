"""The interface of workloads, and the payload patterns of the grid."""
