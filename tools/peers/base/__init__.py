"""The parts that peers share: arms, their timing, the base of Python clients."""
