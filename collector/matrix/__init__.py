"""The matrix, the file that says what is measured: ``matrix`` reads it, ``tests``, ``tunnels``,
``labels`` … read and check its parts, ``choice`` chooses from it, ``skips`` leaves out of it.
"""
