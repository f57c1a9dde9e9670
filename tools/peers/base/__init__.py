"""The parts that peers share: arms, timing, the base of Python clients."""
