"""The parts that all peers share: what an arm is, the timing of arms, Python clients."""
