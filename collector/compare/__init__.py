"""Two sides against each other: ``sides`` loads them, ``compare`` decides cell by cell with the
``statistics``, ``views`` prints; ``acks`` are the regressions that are known.
"""
