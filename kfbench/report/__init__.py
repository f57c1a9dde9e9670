"""Reports of a stored run: tables, sentences, figures and a published page."""
