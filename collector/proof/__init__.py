"""The proof before the number: ``proof`` proves a cell; ``cipso``, ``ipsec``, ``tunnels``,
``forwarding`` and ``kernel`` prove what is theirs, all of it as ``findings``.
"""
