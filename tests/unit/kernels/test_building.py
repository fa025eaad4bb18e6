"""From an entry to a kernel, on a source tree that is built in milliseconds."""

from __future__ import annotations

import json
import subprocess
import tarfile

import pytest
import small_source

from collector.kernels import artifact, build, tree
from collector.kernels.entry import read_entry
from collector.kernels.errors import KernelError
from collector.kernels.paths import built_dir, trees_dir

FRAGMENT = "CONFIG_NET=y\nCONFIG_SECURITY=y\nCONFIG_NETLABEL=y\nCONFIG_MODULES=y\n"


class Bench:
    """A cache of its own, a source, and entries made of it."""

    def __init__(self, folder):
        self.folder = folder
        self.tarball = small_source.tarball(folder)
        self.fragment = folder / "lab.config"
        self.fragment.write_text(FRAGMENT)
        self.told = []

    def entry(self, name="lab", **changes):
        document = {
            "about": "a small one",
            "source": {"tarball": str(self.tarball)},
            "base": "allnoconfig",
            "fragments": [str(self.fragment)],
            **changes,
        }
        return read_entry(name, document, "entry")

    def ensure(self, entry, **options):
        self.told.clear()
        return build.ensure(entry, lambda *step: self.told.append(step), **options)

    def compiled(self):
        return [what for what, done, _total in self.told if done]


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Bench(tmp_path)


def refusal(bench, entry):
    with pytest.raises(KernelError) as refused:
        bench.ensure(entry)
    return str(refused.value)


def test_a_source_becomes_a_kernel_that_says_what_it_is(bench):
    made, found = bench.ensure(bench.entry())
    assert made
    assert found.release == f"6.9.0-lab-{found.identity[:8]}"
    assert found.version == "#1 SMP Thu Jan  1 00:00:00 UTC 1970"
    assert found.kind == "source"
    assert found.made_of["source"] == {"tarball": str(bench.tarball)}
    config = (found.folder / "config").read_text()
    assert "CONFIG_NETLABEL=y" in config
    assert artifact.sha256_of(found.folder / "config") == found.config_sha256
    with tarfile.open(found.folder / "modules.tar") as tar:
        names = tar.getnames()
        inner = tar.extractfile(f"lib/modules/{found.release}/config")
        assert inner is not None
        assert inner.read().decode() == config
        assert {member.uid for member in tar.getmembers()} == {0}
    assert f"lib/modules/{found.release}/modules.dep" in names
    assert f"lib/modules/{found.release}/build" not in names
    assert json.loads((found.folder / "entry.json").read_text())["name"] == "lab"


def test_what_is_there_is_not_made_again(bench):
    entry = bench.entry()
    _, first = bench.ensure(entry)
    assert bench.ensure(entry) == (False, first)
    assert bench.told == []
    assert build.status(entry).artifact == first


def test_a_variant_compiles_only_what_differs(bench):
    bench.ensure(bench.entry())
    assert bench.compiled() == ["tcp.o", "udp.o"]
    patch = small_source.patch(bench.folder / "udp.patch", "udp.c", "int udp;", "long udp;")
    bench.ensure(bench.entry("fixed", patches=[str(patch)]))
    assert bench.compiled() == ["udp.o"]
    bench.ensure(bench.entry("again", fragments=[]))  # without the patch
    assert bench.compiled() == ["udp.o"]
    assert len(list(trees_dir().iterdir())) == 1


def test_the_contents_of_fragments_and_patches_are_what_counts(bench):
    entry = bench.entry()
    _, first = bench.ensure(entry)
    bench.fragment.write_text(FRAGMENT + "CONFIG_PLAIN=m\n")
    assert build.status(entry).reason == "changed since it was built"
    made, second = bench.ensure(entry)
    assert made
    assert second.identity != first.identity
    bench.fragment.write_text(FRAGMENT)
    assert bench.ensure(entry) == (False, first)


def test_two_names_of_the_same_are_two_kernels(bench):
    _, one = bench.ensure(bench.entry("one"))
    _, other = bench.ensure(bench.entry("other"))
    assert one.release != other.release
    assert bench.compiled() == []


def test_an_option_that_does_not_survive_is_named_with_what_it_depends_on(bench):
    bench.fragment.write_text("CONFIG_NET=y\nCONFIG_NETLABEL=y\n")
    assert refusal(bench, bench.entry()) == (
        "kernel lab: options did not survive: lab.config:2: CONFIG_NETLABEL: wanted y, is n: it"
        " depends on SECURITY, and here SECURITY=n"
    )
    assert list(built_dir().iterdir()) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("CONFIG_NOSUCH=y", "CONFIG_NOSUCH: wanted y, is n: this source has no option of that"
                            " name"),
        ("CONFIG_HIDDEN=y", "CONFIG_HIDDEN: wanted y, is n: it has no prompt: only other options"
                            " that select it set it"),
        ("CONFIG_NOT_AN_OPTION=y", "CONFIG_NOT_AN_OPTION: wanted y, is n: this source has no option"
                                   " of that name"),
    ],
)  # fmt: skip
def test_an_option_that_nobody_can_set_is_told(bench, line, why):
    bench.fragment.write_text(FRAGMENT + line + "\n")
    assert (
        refusal(bench, bench.entry()) == f"kernel lab: options did not survive: lab.config:5: {why}"
    )


def test_the_base_can_be_a_target_or_a_file_and_fragments_win_over_it(bench):
    bench.fragment.write_text("# CONFIG_SECURITY is not set\nCONFIG_MODULES=y\n")
    _, found = bench.ensure(bench.entry(base="defconfig"))
    config = (found.folder / "config").read_text()
    assert "CONFIG_NET=y" in config
    assert "CONFIG_SECURITY" not in config
    own = bench.folder / "mine.conf"
    own.write_text("CONFIG_NET=y\nCONFIG_PLAIN=m\n")
    _, found = bench.ensure(bench.entry("own", base=str(own)))
    assert "CONFIG_PLAIN=m" in (found.folder / "config").read_text()


def test_a_patch_that_does_not_apply_names_file_and_hunk_and_leaves_the_tree_usable(bench):
    good = small_source.patch(bench.folder / "good.patch", "udp.c", "int udp;", "long udp;")
    bad = small_source.patch(bench.folder / "bad.patch", "tcp.c", "int ucp;", "long ucp;")
    text = refusal(bench, bench.entry("broken", patches=[str(good), str(bad)]))
    assert text == (
        "kernel broken: patch bad.patch does not apply: tcp.c hunk #1 at line 1; wanted one made"
        " for this source"
    )
    bench.ensure(bench.entry())
    source = next(trees_dir().glob("*/source"))
    assert (source / "udp.c").read_text() == "int udp;\n"


@pytest.mark.parametrize(
    ("file", "old", "why"),
    [
        ("nosuch.c", "int x;", "no file to patch for line 3 of the patch"),
        ("udp.c", "int vdp;", "udp.c hunk #1 at line 1"),
    ],
)
def test_what_a_patch_misses_is_told(bench, file, old, why):
    patch = small_source.patch(bench.folder / "x.patch", file, old, "int y;")
    text = refusal(bench, bench.entry(patches=[str(patch)]))
    assert text.startswith(f"kernel lab: patch x.patch does not apply: {why}")


def test_a_patch_that_the_source_has_already_is_told(bench):
    patch = small_source.patch(bench.folder / "x.patch", "udp.c", "long udp;", "int udp;")
    assert "udp.c has the change already" in refusal(bench, bench.entry(patches=[str(patch)]))


def test_a_tree_that_somebody_changed_is_made_anew(bench):
    patch = small_source.patch(bench.folder / "udp.patch", "udp.c", "int udp;", "long udp;")
    bench.ensure(bench.entry("fixed", patches=[str(patch)]))
    source = next(trees_dir().glob("*/source"))
    (source / "udp.c").write_text("char udp;\n")
    bench.ensure(bench.entry())
    assert (source / "udp.c").read_text() == "int udp;\n"


def test_a_compiler_error_is_the_reason_and_the_log_is_kept(bench):
    patch = small_source.patch(bench.folder / "x.patch", "udp.c", "int udp;", "#error no udp")
    text = refusal(bench, bench.entry(patches=[str(patch)]))
    log = next(trees_dir().glob("*/build.log"))
    assert text.startswith(
        "kernel lab: make bzImage modules ended with 2: udp.c:1:2: error: #error"
    )
    assert text.endswith(f"the whole log is {log}")
    assert list(built_dir().iterdir()) == []


def test_a_missing_file_is_named(bench):
    gone = str(bench.folder / "gone.config")
    assert refusal(bench, bench.entry(fragments=[gone])) == f"{gone}: no such file"
    assert build.status(bench.entry(fragments=[gone])).reason == f"{gone}: no such file"


def test_a_tarball_of_another_hash_is_refused(bench):
    entry = bench.entry(source={"tarball": str(bench.tarball), "sha256": "0" * 64})
    assert refusal(bench, entry).endswith(f"wanted {'0' * 64}")


def test_a_module_outside_the_tree_is_built_and_installed_with_the_others(bench):
    outside = bench.folder / "outside"
    outside.mkdir()
    (outside / "outside.c").write_text("int outside;\n")
    entry = bench.entry(external_modules=[str(outside)])
    _, found = bench.ensure(entry)
    with tarfile.open(found.folder / "modules.tar") as tar:
        assert f"lib/modules/{found.release}/updates/outside.ko" in tar.getnames()
    assert found.modules == 1
    assert found.made_of["external_modules"] == ["outside"]
    assert [path.name for path in outside.iterdir()] == ["outside.c"]
    (outside / "outside.c").write_text("long outside;\n")
    assert build.status(entry).reason == "changed since it was built"


def git(folder, *words):
    done = subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(bench):
    folder = small_source.write(bench.folder / "linux")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    git(folder, "tag", "v1")
    (folder / "udp.c").write_text("long udp;\n")
    git(folder, "commit", "-q", "-a", "-m", "two")
    return folder


def test_two_commits_of_a_checkout_are_built_in_one_tree(bench, checkout):
    old = bench.entry("old", source={"git": str(checkout), "ref": "v1"})
    new = bench.entry("new", source={"git": str(checkout)})
    _, first = bench.ensure(old)
    assert bench.compiled() == ["tcp.o", "udp.o"]
    assert first.made_of["source"]["commit"] == git(checkout, "rev-parse", "v1")
    bench.ensure(new)
    assert bench.compiled() == ["udp.o"]
    patch = small_source.patch(bench.folder / "x.patch", "tcp.c", "int tcp;", "long tcp;")
    bench.ensure(
        bench.entry("patched", source={"git": str(checkout), "ref": "v1"}, patches=[str(patch)])
    )
    assert bench.compiled() == ["tcp.o", "udp.o"]
    assert git(checkout, "status", "--porcelain") == ""


def test_a_checkout_with_changes_is_refused_unless_a_commit_is_named(bench, checkout):
    (checkout / "tcp.c").write_text("changed\n")
    text = refusal(bench, bench.entry(source={"git": str(checkout)}))
    assert text == (
        f"{checkout}: 1 changed files, tcp.c among them; wanted a clean checkout (commit them, or"
        " name a ref)"
    )
    made, _ = bench.ensure(bench.entry(source={"git": str(checkout), "ref": "HEAD"}))
    assert made


def test_a_commit_that_does_not_exist_is_told(bench, checkout):
    text = refusal(bench, bench.entry(source={"git": str(checkout), "ref": "v9"}))
    assert text.startswith(f"{checkout}: git rev-parse:")


def test_a_ready_image_is_taken_as_it_is(bench):
    _, built = bench.ensure(bench.entry())
    document = {
        "about": "somebody else's",
        "image": {
            "vmlinuz": str(built.folder / "vmlinuz"),
            "config": str(built.folder / "config"),
            "modules": str(built.folder / "modules.tar"),
        },
    }
    made, found = bench.ensure(read_entry("ready", document, "entry"))
    assert made
    assert (found.release, found.config_sha256) == (built.release, built.config_sha256)
    assert (found.kind, found.compiler, found.build_s) == ("image", None, None)


def test_modules_of_another_release_are_refused(bench):
    _, one = bench.ensure(bench.entry("one"))
    _, other = bench.ensure(bench.entry("other"))
    document = {
        "about": "mixed up",
        "image": {
            "vmlinuz": str(one.folder / "vmlinuz"),
            "config": str(one.folder / "config"),
            "modules": str(other.folder / "modules.tar"),
        },
    }
    assert refusal(bench, read_entry("mixed", document, "entry")) == (
        f"kernel mixed: modules are of {other.release}, the image is of {one.release}; wanted the"
        " same"
    )


def test_a_file_that_is_changed_while_it_is_built_makes_no_kernel(bench, monkeypatch):
    compile_source = build.compile_source

    def slowly(*arguments):
        found = compile_source(*arguments)
        bench.fragment.write_text(FRAGMENT + "CONFIG_PLAIN=m\n")
        return found

    monkeypatch.setattr(build, "compile_source", slowly)
    assert refusal(bench, bench.entry()) == (
        "kernel lab: what it is made of was changed meanwhile; build it again"
    )
    assert list(built_dir().iterdir()) == []


def test_what_is_built_of_a_branch_is_the_commit_that_it_was(bench, checkout, monkeypatch):
    entry = bench.entry(source={"git": str(checkout), "ref": "main"})
    before = git(checkout, "rev-parse", "main")
    made = build._make

    def later(*arguments):
        (checkout / "udp.c").write_text("char udp;\n")
        git(checkout, "commit", "-q", "-a", "-m", "three")
        made(*arguments)

    monkeypatch.setattr(build, "_make", later)
    _, found = bench.ensure(entry)
    assert found.made_of["source"]["commit"] == before
    source = next(trees_dir().glob("*/source"))
    assert (source / "udp.c").read_text() == "long udp;\n"
    assert build.status(entry).reason == "changed since it was built"


def test_a_module_of_the_same_size_is_another_module(bench, tmp_path):
    _, built = bench.ensure(bench.entry())
    modules = tmp_path / built.release
    modules.mkdir()
    (modules / "modules.order").write_text("")
    (modules / "x.ko").write_bytes(b"one")
    image = {name: str(built.folder / name) for name in ("vmlinuz", "config")}
    document = {"about": "ready", "image": {**image, "modules": str(modules)}}
    entry = read_entry("ready", document, "entry")
    _, first = bench.ensure(entry)
    (modules / "x.ko").write_bytes(b"two")
    assert build.status(entry).reason == "changed since it was built"
    assert bench.ensure(entry)[1].identity != first.identity


def test_a_patch_without_a_change_is_none(bench):
    patch = bench.folder / "empty.patch"
    patch.write_text("")
    assert refusal(bench, bench.entry(patches=[str(patch)])) == (
        "kernel lab: patch empty.patch: found nothing to change in it; wanted a patch"
    )


def test_the_release_is_not_a_fragments_to_name(bench):
    bench.fragment.write_text(FRAGMENT + 'CONFIG_LOCALVERSION="-mine"\n')
    assert refusal(bench, bench.entry()) == (
        'kernel lab: lab.config:5: CONFIG_LOCALVERSION: found "-mine"; wanted it left out: the'
        " release says which entry a kernel is of"
    )


def test_a_tree_stays_locked_while_make_runs_in_it(bench, monkeypatch):
    """Also when whoever started make was killed: the lock is make's as well."""
    with tree.held("key") as own, subprocess.Popen(["cat"], stdin=subprocess.PIPE) as plain:
        held = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(own.lock,))
        plain.communicate()
    waited = []
    monkeypatch.setattr(tree.fcntl, "flock", told := Flock(tree.fcntl.flock, held))
    with held, tree.held("key", lambda: waited.append(True)):
        assert waited == [True]
        assert told.ended


class Flock:
    """flock(2) that ends the other holder before it would wait for it."""

    def __init__(self, flock, other):
        self.flock, self.other, self.ended = flock, other, False

    def __call__(self, handle, how):
        if not how & tree.fcntl.LOCK_NB:
            self.other.communicate()
            self.ended = True
        self.flock(handle, how)


def test_what_killed_builds_left_goes_with_the_next(bench):
    left = built_dir() / ".0123456789abcdef.999999999"
    left.mkdir(parents=True)
    (left / "vmlinuz").write_text("half")
    bench.ensure(bench.entry())
    assert not left.exists()


def test_a_built_kernel_that_cannot_be_read_is_told(bench):
    entry = bench.entry()
    _, found = bench.ensure(entry)
    (found.folder / "entry.json").write_text("{}")
    assert "build the kernel again" in build.status(entry).reason
