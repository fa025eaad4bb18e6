"""GRUB's files as Debian's grub-mkconfig writes them, shortened to what is read of them."""

from __future__ import annotations

UUID = "2f3e"
SIMPLE = f"gnulinux-simple-{UUID}"
ADVANCED = f"gnulinux-advanced-{UUID}"
HEADER = """\
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="@default@"
fi
if [ x"${feature_menuentry_id}" = xy ]; then
  menuentry_id_option="--id"
else
  menuentry_id_option=""
fi
function savedefault {
  if [ -z "${boot_once}" ]; then
    saved_entry="${chosen}"
    save_env saved_entry
  fi
}
function gfxmode {
	set gfxpayload="${1}"
}
"""
FOOTER = """\
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {
	fwsetup
}
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
elif [ -z "${config_directory}" -a -f  $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
"""


def entry(name: str, title: str, release: str, more: str = "", indent: str = "") -> str:
    """A menu entry of a Debian kernel; ``more``: further words of its command line."""
    lines = [
        f"menuentry 'Debian GNU/Linux{title}' --class gnu-linux $menuentry_id_option '{name}' {{",
        "\tload_video",
        "\tinsmod gzio",
        "\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi",
        "\tsearch --no-floppy --fs-uuid --set=root 2f3e",
        f"\techo\t'Loading Linux {release} ...'",
        f"\tlinux\t/boot/vmlinuz-{release} root=UUID={UUID} ro {more}quiet",
        "\techo\t'Loading initial ramdisk ...'",
        f"\tinitrd\t/boot/initrd.img-{release}",
        "}",
    ]
    return "".join(f"{indent}{line}\n" for line in lines)


def menu(*releases: str, default: str = "0") -> str:
    """A ``grub.cfg`` whose first entry has the first release, and all of them below it."""
    inner = ""
    for release in releases:
        for kind, more in (("advanced", ""), ("recovery", "single ")):
            name = f"gnulinux-{release}-{kind}-{UUID}"
            inner += entry(name, f", with Linux {release} ({kind})", release, more, "\t")
    return (
        HEADER.replace("@default@", default)
        + entry(SIMPLE, "", releases[0])
        + "submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option"
        + f" '{ADVANCED}' {{\n{inner}}}\n"
        + FOOTER
    )


def environment(**values: str) -> bytes:
    """An environment block."""
    lines = "".join(f"{name}={value}\n" for name, value in values.items())
    return f"# GRUB Environment Block\n{lines}".encode().ljust(1024, b"#")
