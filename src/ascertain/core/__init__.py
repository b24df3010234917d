"""The rules, pure: no clock, no random, no I/O, no threads.

Everything that is decided is decided here and carried out elsewhere. Read in this order:
`model` (the words as records), `machine` (the table), `contract` (what a target guarantees),
`reconcile` (what to do about an unknown outcome), `settle` (what a finding changes).
Laws are cited by the numbers of docs/semantics.md.
"""
