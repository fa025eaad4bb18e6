"""A stress run: its ``plan``, what the playbooks do with it (``run``), what the hosts noted
(``log``), what must not happen (``checks``), and the ``verdict``.
"""
