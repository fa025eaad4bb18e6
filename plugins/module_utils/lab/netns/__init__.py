"""The lab of network namespaces: hosts on this machine, at native speed, for its superuser."""
