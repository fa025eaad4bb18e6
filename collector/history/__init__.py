"""Many runs: a cell's ``history`` and where it changes, and a ``query`` over all of them."""
