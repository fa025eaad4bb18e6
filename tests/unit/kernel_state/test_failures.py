"""Refusals of the tools: class, errno and hint."""

import errno

import pytest

from collector.kernel_state.failures import (
    batch_failures,
    classify,
    classify_labelled_connect,
)


@pytest.mark.parametrize(
    ("line", "error_class", "errno_name", "hint"),
    [
        ("RTNETLINK answers: Function not implemented", "algorithm_not_allowed", "ENOSYS", "FIPS"),
        ("RTNETLINK answers: File exists", "sa_exists", "EEXIST", "whatever its source"),
        ("RTNETLINK answers: No such process", "sa_missing", "ESRCH", "wanted state"),
        ("RTNETLINK answers: Protocol not supported", "kernel_without_xfrm", "EPROTONOSUPPORT",
         "CONFIG_XFRM_USER"),
        ("RTNETLINK answers: Permission denied", "not_permitted", "EACCES", "setcontext"),
        ("RTNETLINK answers: Text file busy", "refused", "ETXTBSY", None),
        ("Error: Requested AEAD algorithm not found.", "algorithm_not_allowed", None, "FIPS"),
        ("Error: Requested type not found.", "kernel_without_xfrm", None, "CONFIG_INET_ESP"),
        ('Error: argument "ctx" is wrong: unknown', "iproute_without_ctx", None, "name ctx"),
        ("Cannot open netlink socket: Protocol not supported", "kernel_without_xfrm", None,
         "CONFIG_XFRM_USER"),
        ('Object "xfrm" is unknown, try "ip help".', "iproute_without_xfrm", None, "no xfrm"),
        ("secon:  Couldn't read security context: Inappropriate ioctl for device", "no_terminal",
         "ENOTTY", "secon --pid"),
        ("netlabelctl: error, failed to initialize the NetLabel library", "netlabel_unavailable",
         None, "CIPSO cells need real hosts or VMs"),
        ("netlabelctl: error, entry does not exist", "entry_missing", "ENOENT", "not an error"),
        ("netlabelctl: error, Device or resource busy", "doi_in_use", "EBUSY",
         "mappings before DOIs"),
        ("netlabelctl: error, File exists", "entry_exists", "EEXIST", "before adding"),
        ("netlabelctl: error, invalid argument or parameter", "invalid_argument", "EINVAL",
         "tags other than 1"),
        ("netlabelctl: cipsov4: error: Operation not permitted", "not_permitted", "EPERM",
         "CAP_NET_ADMIN"),
        ("netlabelctl: error, unknown or missing module 'cipso'", "usage", None, "module"),
        ('"l" #2: IKE_AUTH response rejected Child SA with TS_UNACCEPTABLE', "no_child_sa", None,
         "no child SA (label mismatch?)"),
        ("received NO_PROPOSAL_CHOSEN notify error", "no_proposal", None, "algorithms"),
        ("state transition failed with error notification NO_PROPOSAL_CHOSEN", "no_proposal",
         None, "algorithms"),
    ],
)  # fmt: skip
def test_each_refusal_has_its_class_and_hint(line, error_class, errno_name, hint):
    found = classify(line)
    if error_class is None:
        assert found is None
        return
    assert (found.error_class, found.errno_name) == (error_class, errno_name)
    assert found.errno == (None if errno_name is None else getattr(errno, errno_name))
    assert hint is None if found.hint is None else hint in found.hint


def test_other_lines_are_no_refusal():
    for line in ("", "netlabelctl map list", "src 192.0.2.1 dst 192.0.2.2", "no error here"):
        assert classify(line) is None


@pytest.mark.parametrize(
    "text",
    [
        "connect: No space left on device",
        "establish control: Operation now in progress",
        "Connection timed out",
    ],
)
def test_connect_failures_of_a_labelled_cell_are_the_tag(text):
    assert classify_labelled_connect(text).error_class == "label_does_not_fit_tag"
    assert classify_labelled_connect("Connection refused") is None


def test_batch_failures_name_their_line():
    stderr = (
        "RTNETLINK answers: No such process\nCommand failed -:1\n"
        "Error: Requested AEAD algorithm not found.\nCommand failed -:3\n"
    )
    assert [(line, found.error_class) for line, found in batch_failures(stderr)] == [
        (1, "sa_missing"),
        (3, "algorithm_not_allowed"),
    ]


def test_ip_xfrm_ends_at_its_first_refusal_without_naming_the_line():
    found = batch_failures("Error: Requested type not found.\n")
    assert [(line, failure.error_class) for line, failure in found] == [
        (None, "kernel_without_xfrm")
    ]
    assert batch_failures("") == []


def test_a_key_that_ip_quotes_in_its_refusal_is_hidden():
    for key in ("0x0102030405060708090a", "not a key", "0123456789012345"):
        found = classify(f'Error: argument "{key}" is wrong: ALGO-KEYMAT value is invalid')
        assert found.error_class == "iproute_usage"
        assert key not in repr(found)
