"""The calculator of a page: a form in which readers set their own records and see their bytes in every format.

`rules` has the sizes that the page computes. `data` has the settings, and joins all for the page.
"""
