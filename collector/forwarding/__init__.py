"""Forwarding measured as RFC 2544 has it: trials, their judgement, and searches over them.

``trial`` has the types, ``linerate`` the arithmetic of the wire, ``judge`` says whether a trial
counts, ``session`` repeats and keeps trials, ``measures`` and ``ndr_pdr`` are the searches.
Everything here is pure but for the measuring function that a search is given.
"""
