"""The verbs: claim → call → settle, recovery, runs, reviews. Use them through `ascertain`."""
