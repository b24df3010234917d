"""The command line: `ascertain`. It uses the runtime's public verbs and decides nothing."""
