"""YAML in which each key of a mapping stands once: of two, YAML itself keeps the last silently."""

from __future__ import annotations

from typing import Any

import yaml

from collector.errors import InputError


class _Loader(yaml.SafeLoader):
    """Safe YAML with an error for a key that is said twice."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """As ever, and looked at before ``<<`` is put in, whose keys may be said anew."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _value in node.value:
            said = (key.tag, str(key.value))
            if isinstance(key, yaml.ScalarNode) and said in seen:
                raise yaml.composer.ComposerError(
                    None, None, f"found the key {key.value!r} twice", key.start_mark
                )
            seen.add(said)
        return node


def load(text: str) -> Any:
    """The document of a text. Raises yaml.YAMLError, with the line in its ``problem_mark``."""
    return yaml.load(text, Loader=_Loader)


def fault(file: str, error: yaml.YAMLError, wanted: str) -> InputError:
    """What is wrong with the text of a file, and in which line."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    found = f"text that is not YAML ({problem})" if problem else "text that is not YAML"
    return InputError(f"{file}:{mark.line + 1}" if mark else file, found, wanted)
