"""From points to an answer: which method and k at each operating point, and which servers to run for a mix of traffic."""
