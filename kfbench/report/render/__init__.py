"""Tables, figures and words as text, Markdown and HTML."""
