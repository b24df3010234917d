"""How to act and look up at outside systems, and what their answers and errors prove."""
