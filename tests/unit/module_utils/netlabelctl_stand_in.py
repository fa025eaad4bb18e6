"""netlabelctl's plain listings and refusals over the model of the kernel, as a command runner."""

from ansible_collections.crossover.lab.plugins.module_utils.cipso_host import Finished

from .netlabel_kernel import Kernel, RefusedError

WORDS = {
    "EINVAL": "invalid argument or parameter",
    "ENOENT": "entry does not exist",
    "EEXIST": "File exists",
    "EBUSY": "Device or resource busy",
}
KINDS = {"trans": "TRANSLATED", "pass": "PASS_THROUGH", "local": "LOCAL"}
PROTOCOLS = {"cipso": "CIPSOv4", "calipso": "CALIPSO", "unlbl": "UNLABELED"}


class Netlabelctl:
    """Runs argv; ``calls`` are the changing ones. ``fail_at``: refuse that changing call."""

    def __init__(self, kernel: Kernel, fail_at=None) -> None:
        self.kernel, self.fail_at, self.calls = kernel, fail_at, []

    def __call__(self, argv):
        argv = tuple(argv)
        if argv[2] == "list":
            return Finished(0, self._list(argv) + "\n", "")
        self.calls.append(argv)
        try:
            if self.fail_at == len(self.calls) - 1:
                raise RefusedError("EINVAL", argv)
            self.kernel.run([argv])
        except RefusedError as error:
            return Finished(1, "", f"netlabelctl: error, {WORDS[error.args[0]]}\n")
        return Finished(0, "", "")

    def _list(self, argv):
        kernel = self.kernel
        if argv[1] in ("cipso", "calipso"):
            dois = {key[1]: doi for key, doi in kernel.dois.items() if key[0] == argv[1]}
            if len(argv) == 3:
                return " ".join(f"{number},{KINDS[doi.kind]}" for number, doi in dois.items())
            doi = dois[int(argv[3].partition(":")[2])]
            text = "tags:" + ",".join(map(str, doi.tags))
            if doi.kind == "trans":
                for name, table in (("levels", doi.levels), ("categories", doi.categories)):
                    text += f" {name}:" + ",".join(f"{a}={b}" for a, b in table.items())
            return text
        if argv[1] == "unlbl":
            static = [
                f"interface:{item.interface or 'DEFAULT'},address:{item.address},"
                f'label:"{item.label}"'
                for item in kernel.static
            ]
            return " ".join([f"accept:{'on' if kernel.accept else 'off'}", *static])
        domains = {}
        for entry in kernel.maps:
            domains.setdefault(entry.domain, []).append(entry)
        return " ".join(self._domain(name, entries) for name, entries in domains.items())

    @staticmethod
    def _domain(name, entries):
        parts = []
        for entry in entries:
            text = PROTOCOLS[entry.protocol]
            if entry.doi is not None:
                text += f",{entry.doi}"
            elif entry.selector is None and entry.family is not None:
                text += f",{entry.family}"
            parts.append(
                text if entry.selector is None else f"address:{entry.selector},protocol:{text}"
            )
        head = "domain:DEFAULT" if name is None else f'domain:"{name}"'
        return ",".join([head, *parts])
