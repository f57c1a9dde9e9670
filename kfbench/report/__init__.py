"""From a stored run to something a person reads: tables, figures, checked claims, a published page."""
