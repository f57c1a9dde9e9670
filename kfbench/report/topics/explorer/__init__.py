"""The explorer of a report: a form in which readers set their own records and see their bytes in every format.

`rules` has the sizes that the page computes, `measured` the rows of the run. `data` joins both for the page.
"""
