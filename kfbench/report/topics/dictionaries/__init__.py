"""The chapter about topic dictionaries: bytes, cost, CPU time and ageing."""
