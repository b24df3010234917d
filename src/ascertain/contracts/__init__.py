"""What each kind of operation guarantees: dated data with the source of each claim."""
