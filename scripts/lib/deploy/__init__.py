"""From a recommended server to what an operator starts: command, compose file, schedule of k by batch size."""
