"""The section about columnar, this project's research format."""
