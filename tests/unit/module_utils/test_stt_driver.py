"""The STT module of a host: built when it must be, removed when it is ours."""

import json
import os

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import stt_driver
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError

RELEASE = os.uname().release
MADE = {"release": RELEASE, "digest": "d1", "method": "kbuild"}


class Host:
    """Answers commands; ``module`` and ``plugin`` say what it has."""

    def __init__(self, module=False, plugin=False, links="[]"):
        self.module, self.plugin, self.links = module, plugin, links
        self.ran = []

    def __call__(self, argv):
        self.ran.append(list(argv))
        if argv[0] == "modinfo":
            return (0, "/lib/modules/stt.ko\n", "") if self.module else (1, "", "not found")
        if argv[:3] == ["ip", "link", "help"]:
            return 255, "", "Usage: ... stt remote ADDRESS" if self.plugin else "Usage: ip link"
        if argv[0] == "ip":
            return 0, self.links, ""
        if "install" in argv:
            self.module = self.plugin = True
        return 0, "", ""


@pytest.fixture
def sources(tmp_path):
    folder = tmp_path / "sources"
    (folder / "plugin").mkdir(parents=True)
    (folder / "device.c").write_text("int a;")
    return folder


@pytest.fixture
def modules(tmp_path):
    (tmp_path / "modules" / RELEASE / "build").mkdir(parents=True)
    return tmp_path / "modules"


@pytest.fixture
def record(tmp_path):
    return tmp_path / "lib" / "stt.json"


def found(recorded=None, available=False, digest="d1", dkms=False, release=RELEASE):
    return stt_driver.Found(release, available, recorded, digest, dkms)


@pytest.mark.parametrize(
    ("host", "build"),
    [
        (found(), True),
        (found(available=True), False),
        (found(MADE, available=True), False),
        (found(MADE, available=False), True),
        (found(MADE, available=True, digest="d2"), True),
        (found(MADE, available=True, release="6.12.9"), True),
        (found({**MADE, "method": "dkms"}, available=True, release="6.12.9"), False),
    ],
    ids=["nothing", "the system's", "ours", "lost", "older sources", "another kernel", "dkms"],
)
def test_it_is_built_only_when_it_must_be(host, build):
    assert stt_driver.needs_build(host) is build


def test_dkms_takes_the_place_of_make_where_the_host_has_it(sources):
    make = ["make", "-C", str(sources), f"KERNEL={RELEASE}"]
    assert stt_driver.build_steps(found(), sources) == [[*make, "all", "install"]]
    package = ["-m", "crossover-stt", "-v", "1.0"]
    built = [[*make, "plugin", "install-plugin"], ["dkms", "install", *package, "-k", RELEASE]]
    assert stt_driver.build_steps(found(dkms=True), sources) == built
    before = {**MADE, "method": "dkms"}
    remove = ["dkms", "remove", *package, "--all"]
    assert stt_driver.build_steps(found(before, dkms=True), sources) == [remove, *built]
    # Made by make before the host got DKMS, which knows nothing of it.
    assert stt_driver.build_steps(found(MADE, dkms=True), sources) == [[*make, "uninstall"], *built]


def test_a_kernel_that_is_gone_is_not_named(sources, modules):
    old = {**MADE, "release": "6.1.0-gone"}
    (make,) = stt_driver.removal_steps(found(old), sources, modules)
    assert f"KERNEL={RELEASE}" in make
    (modules / "6.1.0-gone").mkdir()
    (make,) = stt_driver.removal_steps(found(old), sources, modules)
    assert "KERNEL=6.1.0-gone" in make


def test_an_installation_that_is_cut_off_is_made_again_and_can_be_removed(sources, record, modules):
    def killed(argv):
        if "install" in argv:
            raise KeyboardInterrupt
        return Host()(argv)

    digest = stt_driver.digest(sources)
    with pytest.raises(KeyboardInterrupt):
        stt_driver.install(found(digest=digest), killed, record, sources, modules)
    # The module is in place already, or one of the sources before.
    left = stt_driver.observe(Host(module=True, plugin=True), record, sources)
    assert left.recorded == {
        "release": RELEASE,
        "digest": stt_driver.UNFINISHED,
        "method": "kbuild",
    }
    assert stt_driver.needs_build(left)
    stt_driver.remove(left, Host(module=True, plugin=True), record, sources, modules)
    assert not record.exists()


def test_what_dkms_does_not_have_it_need_not_remove(sources, record, modules):
    def run(argv):
        if argv[:2] == ["dkms", "remove"]:
            return 3, "", "Error! The module/version combo is not located in the DKMS tree."
        return Host()(argv)

    record.parent.mkdir()
    record.write_text(json.dumps(MADE))
    by_dkms = found({**MADE, "method": "dkms"}, dkms=True)
    stt_driver.remove(by_dkms, run, record, sources, modules)
    assert not record.exists()

    def refusing(argv):
        return (3, "", "Error! no") if argv[:2] == ["dkms", "remove"] else Host()(argv)

    with pytest.raises(HostError, match="Error! no"):
        stt_driver.remove(by_dkms, refusing, record, sources, modules)


def test_a_module_of_older_sources_is_unloaded_before_it_is_replaced(
    sources, record, modules, tmp_path
):
    host, loaded = Host(module=True, plugin=True), tmp_path / "loaded"
    loaded.touch()
    older = found({**MADE, "digest": "d0"}, available=True)
    stt_driver.install(older, host, record, sources, modules, loaded)
    assert host.ran.index(["rmmod", "stt"]) < next(
        at for at, argv in enumerate(host.ran) if argv[0] == "make"
    )
    assert stt_driver.read_record(record) == {**MADE, "digest": "d1"}
    busy = Host(links='[{"ifname": "stt1"}]')
    with pytest.raises(HostError, match=r"links stt1 exist; wanted none before .* replaced"):
        stt_driver.install(older, busy, record, sources, modules, loaded)
    assert stt_driver.read_record(record) == {**MADE, "digest": "d1"}


def test_what_is_there_afterwards_is_recorded(sources, record, modules):
    host = Host()
    before = stt_driver.observe(host, record, sources)
    assert (before.available, before.recorded) == (False, None)
    stt_driver.install(before, host, record, sources, modules)
    after = stt_driver.observe(host, record, sources)
    assert after.available
    assert after.recorded == {
        "release": RELEASE,
        "digest": stt_driver.digest(sources),
        "method": "dkms" if before.dkms else "kbuild",
    }
    assert not stt_driver.needs_build(after)


def test_missing_headers_are_named(sources, record):
    host = stt_driver.Found("9.9.9-none", False, None, "d1", False)
    with pytest.raises(HostError, match=r"/9\.9\.9-none/build: no headers of the running"):
        stt_driver.install(host, Host(), record, sources)
    assert not record.exists()


def test_a_build_that_nobody_finds_is_an_error(sources, record, modules):
    def deaf(argv):
        return (1, "", "no") if argv[0] == "modinfo" else (0, "", "")

    with pytest.raises(HostError, match=r"STT: built for .*, and modinfo or ip does not find it"):
        stt_driver.install(found(), deaf, record, sources, modules)


def test_only_what_was_installed_is_removed(sources, record, modules):
    host = Host(module=True, plugin=True)
    stt_driver.remove(found(available=True), host, record, sources, modules)
    assert host.ran == []
    record.parent.mkdir()
    record.write_text(json.dumps(MADE))
    stt_driver.remove(found(MADE, available=True), host, record, sources, modules)
    assert ["make", "-C", str(sources), f"KERNEL={RELEASE}", "uninstall"] in host.ran
    assert not record.exists()
    assert not sources.exists()


def test_what_dkms_leaves_in_its_folder_goes_too(sources, record, modules):
    left = modules / RELEASE / "updates" / "dkms" / "stt.ko.xz"
    others = left.with_name("sttx.ko.xz")
    left.parent.mkdir(parents=True)
    for path in (left, others):
        path.write_text("")
    record.parent.mkdir()
    record.write_text(json.dumps(MADE))
    host = Host(module=True, plugin=True)
    earlier = modules / "6.1.0-earlier" / "updates" / "stt.ko"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("")
    stt_driver.remove(found(MADE, available=True), host, record, sources, modules)
    assert (left.exists(), earlier.exists()) == (True, False)
    sources.mkdir()
    record.write_text(json.dumps(MADE))
    by_dkms = found({**MADE, "method": "dkms"}, available=True, dkms=True)
    stt_driver.remove(by_dkms, host, record, sources, modules)
    assert (left.exists(), others.exists()) == (False, True)
    assert host.ran[-1] == ["depmod", RELEASE]


def test_links_that_exist_keep_the_module(sources, record):
    host = Host(module=True, plugin=True, links='[{}, {"ifname": "stt1"}]')
    with pytest.raises(HostError, match=r"^STT: links stt1 exist; wanted none before"):
        stt_driver.remove(found(MADE), host, record, sources)


@pytest.mark.parametrize(("text", "told"), [("{", "not JSON"), ("[]", "wanted release, digest")])
def test_a_record_that_cannot_be_read_is_named(record, text, told):
    record.parent.mkdir()
    record.write_text(text)
    with pytest.raises(HostError, match=told):
        stt_driver.read_record(record)
