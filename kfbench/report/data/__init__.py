"""Views of the stored rows of one run. Sections of the report read them."""
