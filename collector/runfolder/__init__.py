"""The run folder: its plan and provenance (``runfolder``), its ``journal``, its ``samples`` and how
they are stored (``store``). docs/data-format.md has every field.
"""
