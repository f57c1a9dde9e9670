"""Reports of a stored run: tables, sentences and figures, written as a folder with a web page."""
