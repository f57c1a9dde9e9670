"""The stored rows of a run, as reports ask for them."""
