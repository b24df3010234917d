"""Real targets, injected faults and an auditor: what shows that the promises hold."""
