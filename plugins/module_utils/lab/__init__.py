"""The embedded lab: topology, image, acceleration, QEMU instances, saved state.

Runs on the controller (the role calls it through the modules ``guest_image`` and ``qemu_lab``).
``collector.lab`` is the same source: the command line reads a lab's state through it.
"""
