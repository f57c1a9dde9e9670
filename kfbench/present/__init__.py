"""What results are shown with: tables, figures, pages, names, and the calculator of a page. It knows no subject."""
