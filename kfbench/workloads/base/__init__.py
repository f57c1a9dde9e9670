"""The interface of workloads (generators of records), and the payload patterns of the grid."""
