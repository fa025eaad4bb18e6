"""A model of what the kernel does with netlabelctl commands, for the tests of plans.

It refuses what the kernel refuses (net/netlabel/netlabel_domainhash.c, netlabel_mgmt.c,
net/ipv4/cipso_ipv4.c), so that a plan in the wrong order fails.
"""

from ansible_collections.crossover.lab.plugins.module_utils.netlabel_plan import (
    Doi,
    MapEntry,
    NetlabelState,
    StaticLabel,
    Unlabelled,
)


class RefusedError(Exception):
    """The kernel's errno name and the command."""


class Kernel:
    """Holds a configuration and takes commands as argv."""

    def __init__(self, state: NetlabelState) -> None:
        self.dois = {(doi.protocol, doi.number): doi for doi in state.dois}
        self.maps = list(state.maps)
        unlabelled = state.unlabelled or Unlabelled(True)
        self.accept = unlabelled.accept
        self.static = list(unlabelled.static)
        self.without_default = 0  # commands run while the default domain had no mapping

    def state(self) -> NetlabelState:
        return NetlabelState(
            tuple(self.dois.values()),
            tuple(self.maps),
            Unlabelled(self.accept, tuple(self.static)),
        )

    def run(self, commands) -> None:
        for argv in commands:
            assert argv[0] == "netlabelctl"
            values = dict(word.partition(":")[::2] for word in argv[3:] if ":" in word)
            getattr(self, f"_{argv[1]}_{argv[2]}")(argv, values)
            if not any(entry.domain is None for entry in self.maps):
                self.without_default += 1

    def _cipso_add(self, argv, values) -> None:
        kind, number = argv[3], int(values["doi"])
        if (argv[1], number) in self.dois:
            raise RefusedError("EEXIST", argv)
        tags = tuple(int(tag) for tag in values.get("tags", "").split(",") if tag)
        tables = [
            dict(
                tuple(map(int, item.split("="))) for item in values.get(key, "").split(",") if item
            )
            for key in ("levels", "categories")
        ]
        if kind == "local":
            tags = (128,)
        elif argv[1] == "cipso" and (not tags or (kind == "trans" and tags != (1,))):
            raise RefusedError("EINVAL", argv)
        self.dois[(argv[1], number)] = Doi(number, kind, tags, *tables, argv[1])

    _calipso_add = _cipso_add

    def _cipso_del(self, argv, values) -> None:
        key = (argv[1], int(values["doi"]))
        if key not in self.dois:
            raise RefusedError("ENOENT", argv)
        if any((entry.protocol, entry.doi) == key for entry in self.maps):
            raise RefusedError("EBUSY", argv)
        del self.dois[key]

    _calipso_del = _cipso_del

    def _map_del(self, argv, values) -> None:
        domain = values.get("domain")
        if not any(entry.domain == domain for entry in self.maps):
            raise RefusedError("ENOENT", argv)
        self.maps = [entry for entry in self.maps if entry.domain != domain]

    def _map_add(self, argv, values) -> None:
        protocol, _, extra = values["protocol"].partition(",")
        selector = next((w[8:] for w in argv if w.startswith("address:")), None)
        family = {"cipso": 4, "calipso": 6}.get(protocol)
        doi = None
        if protocol == "unlbl":
            family = int(extra) if extra else None
        else:
            doi = int(extra)
            if (protocol, doi) not in self.dois:
                raise RefusedError("ENOENT", argv)
        if selector is not None:
            family = 6 if ":" in selector else 4
        domain = values.get("domain")
        for entry in self.maps:
            if entry.domain != domain or (
                None not in (family, entry.family) and family != entry.family
            ):
                continue
            if selector is None or entry.selector is None or entry.selector == selector:
                raise RefusedError("EEXIST", argv)
        self.maps.append(MapEntry(domain, selector, family, protocol, doi))

    def _unlbl_accept(self, argv, values) -> None:
        self.accept = argv[3] == "on"

    def _unlbl_add(self, argv, values) -> None:
        label = next(word[6:] for word in argv if word.startswith("label:"))
        self.static.append(StaticLabel(values.get("interface"), self._address(argv), label))

    def _unlbl_del(self, argv, values) -> None:
        where = (values.get("interface"), self._address(argv))
        kept = [item for item in self.static if (item.interface, item.address) != where]
        if len(kept) == len(self.static):
            raise RefusedError("ENOENT", argv)
        self.static = kept

    @staticmethod
    def _address(argv) -> str:
        return next(word[8:] for word in argv if word.startswith("address:"))
