"""The code that record formats share. No module here defines a format."""
