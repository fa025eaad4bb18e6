"""A model of what the kernel does with lines of ``ip -batch``, for the tests of plans.

It keeps SAs and policies by the kernel's own identity and refuses what the kernel refuses; its
listing is the text that ``ip -s xfrm state`` and ``ip -s xfrm policy`` would print.
"""

import shlex

FLAGS = ("noecn", "esn", "af-unspec", "localok", "icmp")


class RefusedError(Exception):
    """The errno name and the line."""


def _options(words):
    """Options of a line as a dict; templates, limits and selectors as lists."""
    found, tmpl, sel = {"limit": {}, "flag": [], "tmpl": []}, None, None
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "limit":
            kind = words.pop(0)
            found["limit"][kind] = int(words.pop(0))
        elif word == "flag":
            found["flag"].append(words.pop(0))
        elif word == "tmpl":
            tmpl = {}
            found["tmpl"].append(tmpl)
        elif word in ("aead", "auth-trunc"):
            found[word] = (words.pop(0), words.pop(0), int(words.pop(0)))
        elif word == "enc":
            found[word] = (words.pop(0), words.pop(0), None)
        elif word == "offload":
            sel, found["offload"] = None, True
        elif word in ("mark", "output-mark"):
            value = int(words.pop(0), 0)
            assert words.pop(0) == "mask"
            found[word] = (value, int(words.pop(0), 0))
        elif word == "sel":
            sel = {}
            found["sel"] = sel
        elif tmpl is not None:
            tmpl[word] = words.pop(0)
        elif sel is not None and word in ("src", "dst", "proto", "sport", "dport"):
            sel[word] = words.pop(0)
        else:
            assert word not in found, word
            found[word] = words.pop(0)
    return found


class Kernel:
    """SAs and policies; :meth:`run` takes the text of a batch, and stops where ip would."""

    def __init__(self):
        self.sas = {}
        self.policies = {}

    def run(self, batch, stop_at=None):
        for number, line in enumerate(batch.splitlines(), start=1):
            if number == stop_at:
                raise RefusedError("EINVAL", line)
            xfrm, what, verb, *words = shlex.split(line)
            assert xfrm == "xfrm"
            getattr(self, f"_{what}_{verb}")(_options(words), line)

    def _sa_key(self, options):
        return (
            options["dst"],
            options["proto"],
            int(options["spi"], 0),
            options.get("mark", (0, 0)),
        )

    def _found(self, key):
        value, mask = key[3]
        for other in self.sas:
            if other[:3] == key[:3] and (value & mask & other[3][1]) == other[3][0] & other[3][1]:
                return other
        return None

    def _state_add(self, options, line):
        if self._found(self._sa_key(options)) is not None:
            raise RefusedError("EEXIST", line)
        self.sas[self._sa_key(options)] = options

    def _state_delete(self, options, line):
        found = self._found(self._sa_key(options))
        if found is None:
            raise RefusedError("ESRCH", line)
        del self.sas[found]

    def _policy_key(self, options):
        names = ("src", "dst", "proto", "sport", "dport", "dir", "ctx", "mark", "if_id")
        return tuple(options.get(name) for name in names)

    def _policy_add(self, options, line):
        if self._policy_key(options) in self.policies:
            raise RefusedError("EEXIST", line)
        self.policies[self._policy_key(options)] = options

    def _policy_update(self, options, line):
        self.policies[self._policy_key(options)] = options

    def _policy_delete(self, options, line):
        if self._policy_key(options) not in self.policies:
            raise RefusedError("ENOENT", line)
        del self.policies[self._policy_key(options)]

    def list_states(self):
        return "".join(self._state_text(options) for options in self.sas.values())

    def list_policies(self):
        return "".join(self._policy_text(options) for options in self.policies.values())

    @staticmethod
    def _lifetime(limits):
        def both(soft, hard, unit):
            soft, hard = (limits.get(name, "(INF)") for name in (soft, hard))
            return f"\t  limit: soft {soft}({unit}), hard {hard}({unit})\n"

        def expire(word, soft, hard):
            return (
                f"\t  expire {word}: soft {limits.get(soft, 0)}(sec), "
                f"hard {limits.get(hard, 0)}(sec)\n"
            )

        return (
            "\tlifetime config:\n" + both("byte-soft", "byte-hard", "bytes")
            + both("packet-soft", "packet-hard", "packets")
            + expire("add", "time-soft", "time-hard")
            + expire("use", "time-use-soft", "time-use-hard")
            + "\tlifetime current:\n\t  0(bytes), 0(packets)\n\t  add 2026-01-01 00:00:00 use -\n"
        )  # fmt: skip

    @staticmethod
    def _selector(options):
        text = f"src {options['src']} dst {options['dst']} "
        for name in ("proto", "sport", "dport"):
            if name in options:
                text += f"{name} {options[name]} "
        return text + "uid 0\n"

    def _state_text(self, options):
        spi, window = int(options["spi"], 0), int(options.get("replay-window", 0))
        esn = "esn" in options["flag"] or window > 32
        flags = " ".join(options["flag"])
        text = (
            f"src {options['src']} dst {options['dst']}\n"
            f"\tproto {options['proto']} spi 0x{spi:08x}({spi}) reqid {options['reqid']}"
            f"(0x{int(options['reqid']):08x}) mode {options['mode']}\n"
            f"\treplay-window {0 if esn else window} seq 0x00000000 flag {flags} (0x00000000)\n"
        )
        if "mark" in options:
            text += "\tmark {:#x}/{:#x} \n".format(*options["mark"])
        for kind in ("auth-trunc", "aead", "enc"):
            if kind in options:
                name, key, bits = options[kind]
                shown = f"{key} ({4 * (len(key) - 2)} bits)" if key else ""
                text += f"\t{kind} {name} {shown}" + (f" {bits}\n" if bits is not None else "\n")
        if esn:
            words = (window + 31) // 32
            text += (
                "\tanti-replay esn context:\n\t seq-hi 0x0, seq 0x0, oseq-hi 0x0, oseq 0x0\n"
                f"\t replay_window {window}, bitmap-length {words}"
            )
            for at in range(words):
                text += ("\n\t " if at % 8 == 0 else "") + "00000000 "
            text += "\n"
        else:
            text += "\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n"
        if "if_id" in options:
            text += f"\tif_id {int(options['if_id'], 0):#x}\n"
        everything = "::/0" if ":" in options["dst"] else "0.0.0.0/0"
        text += "\tsel " + self._selector(
            options.get("sel", {"src": everything, "dst": everything})
        )
        text += self._lifetime(options["limit"]) + "\tstats:\n"
        text += "\t  replay-window 0 replay 0 failed 0\n"
        return text + (f"\tsecurity context {options['ctx']} \n" if "ctx" in options else "")

    def _policy_text(self, options):
        text = self._selector(options)
        text += f"\tsecurity context {options['ctx']} \n" if "ctx" in options else ""
        text += (
            f"\tdir {options['dir']} action {options['action']} index 1 priority "
            f"{options['priority']} ptype main share any flag {' '.join(options['flag'])} "
            "(0x00000000)\n" + self._lifetime(options["limit"])
        )
        if "mark" in options:
            text += "\tmark {:#x}/{:#x} \n".format(*options["mark"])
        for tmpl in options["tmpl"]:
            text += (
                f"\ttmpl src {tmpl['src']} dst {tmpl['dst']}\n\t\tproto {tmpl['proto']} "
                f"spi 0x00000000(0) reqid {tmpl['reqid']}(0x{int(tmpl['reqid']):08x}) mode "
                f"{tmpl['mode']}\n\t\tlevel {tmpl['level']} share any \n"
                "\t\tenc-mask ffffffff auth-mask ffffffff comp-mask ffffffff\n"
            )
        return text + (f"\tif_id {int(options['if_id'], 0):#x}\n" if "if_id" in options else "")
