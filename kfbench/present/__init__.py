"""Tables, figures, pages, names, and the calculator of a page. Nothing here knows what is measured."""
