"""Calls an Ansible module's entry point with arguments and takes what it answers."""

import json
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args


def call(module: Any, capsys: Any, check: bool = False, **arguments: Any) -> dict[str, Any]:
    """What the module prints. ``check`` runs it in check mode."""
    with (
        patch_module_args({**arguments, "_ansible_check_mode": check}),
        pytest.raises(SystemExit),
    ):
        module.main()
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer
