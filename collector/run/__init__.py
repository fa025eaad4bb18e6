"""A run: ``plan`` orders its cells, ``campaign`` goes through it group by group, ``record`` writes
it down, ``runner`` starts the playbooks (the only file of the collector that knows Ansible).
"""
