"""A kernel really compiled from Debian's source, then variants of it in the same tree. Long."""

from __future__ import annotations

import difflib
import shutil
import tarfile

import pytest

from collector.kernels import build
from collector.kernels.entry import read_entry
from collector.kernels.paths import trees_dir
from collector.run.kernel_entries import entry_document

pytestmark = pytest.mark.slow
PKTGEN = "net/core/pktgen.c"
NEW = b"Packet Generator of the test"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache of its own: nothing that was built before helps. It takes gigabytes."""
    folder = tmp_path_factory.mktemp("kernels")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder
    shutil.rmtree(folder)


def ensure(name, document):
    steps = []
    made, found = build.ensure(
        read_entry(name, document, "test"), lambda what, done, total: steps.append(done)
    )
    assert made
    return found, max(steps)


@pytest.fixture(scope="module")
def plain(cache):
    return ensure("lab-6.12", entry_document("lab-6.12"))


def module_text(found, name):
    with tarfile.open(found.folder / "modules.tar") as tar:
        inner = next(item for item in tar.getmembers() if item.name.endswith(f"/{name}"))
        handle = tar.extractfile(inner)
        assert handle is not None
        return handle.read()


def test_the_shipped_source_becomes_a_kernel(plain):
    found, steps = plain
    assert steps > 1000
    assert found.release.startswith("6.12.")
    assert found.release.endswith(f"-lab-6.12-{found.identity[:8]}")
    assert found.modules > 20
    assert "CONFIG_NETLABEL=y\n" in (found.folder / "config").read_text()


def test_a_variant_is_compiled_in_the_same_tree(plain):
    found, steps = ensure("lab-6.12-disable", entry_document("lab-6.12-disable"))
    assert steps < plain[1]
    assert "CONFIG_NETLABEL=y\n" not in (found.folder / "config").read_text()
    assert "CONFIG_SECURITY_SELINUX=y\n" in (found.folder / "config").read_text()


def test_the_same_source_without_a_patch_is_the_one_without_it(plain, tmp_path):
    source = next(trees_dir().glob("*/source"))
    before = (source / PKTGEN).read_text()
    after = before.replace("Packet Generator tool", NEW.decode())
    assert after != before
    patch = tmp_path / "0001-pktgen.patch"
    patch.write_text(
        "".join(
            difflib.unified_diff(
                before.splitlines(keepends=True), after.splitlines(keepends=True),
                f"a/{PKTGEN}", f"b/{PKTGEN}",
            )
        )
    )  # fmt: skip
    document = {**entry_document("lab-6.12"), "patches": [str(patch)]}
    patched, steps = ensure("patched", document)
    assert NEW in module_text(patched, "pktgen.ko")
    assert NEW not in module_text(plain[0], "pktgen.ko")
    assert steps < plain[1] / 4


def test_a_module_outside_the_tree_is_built_for_exactly_this_kernel(plain, tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "Kbuild").write_text("obj-m := outside.o\n")
    (folder / "outside.c").write_text(
        '#include <linux/module.h>\nMODULE_LICENSE("GPL");\nMODULE_DESCRIPTION("outside");\n'
    )
    document = {**entry_document("lab-6.12"), "external_modules": [str(folder)]}
    found, _steps = ensure("outside", document)
    assert f"vermagic={found.release} ".encode() in module_text(found, "outside.ko")
    assert [path.name for path in sorted(folder.iterdir())] == ["Kbuild", "outside.c"]
