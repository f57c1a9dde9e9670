"""The code that peers (timed implementations) share: their interface, the timing, and the base of Python clients."""
