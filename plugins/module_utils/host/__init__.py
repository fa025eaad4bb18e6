"""State of a measured host: kernel settings, processes, devices, SELinux, provenance.

Target code: standard library only, Python 3.9. Reading and planning are apart from doing, so that
both can be tested without root. What goes wrong raises :class:`~.errors.HostError` with a message
for people: what, where, what was found, what was wanted.
"""
