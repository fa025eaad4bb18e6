"""Plans of settings: what changes, what goes back, what is remembered."""

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils.host import settings
from ansible_collections.crossover.lab.plugins.module_utils.host.settings import Change

KEYS = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.sampled_from(["0", "1", "2"])
HOST = st.fixed_dictionaries(dict.fromkeys("abcd", VALUES))
DECLARED = st.dictionaries(KEYS, VALUES)


def carry_out(host, plan):
    """The host after a plan."""
    host = dict(host)
    for change in plan.changes:
        assert host[change.key] == change.before
        host[change.key] = change.after
    return host


def test_the_value_before_the_first_change_is_remembered():
    first = settings.plan({"a": "1"}, {"a": "0"}, {})
    assert first.changes == (Change("a", "1", "0"),)
    assert first.record == {"a": "1"}
    second = settings.plan({"a": "0"}, {"a": "2"}, first.record)
    assert second.changes == (Change("a", "0", "2"),)
    assert second.record == {"a": "1"}


def test_what_is_declared_no_more_goes_back_last_first():
    plan = settings.plan({"a": "0", "b": "0", "c": "9"}, {"c": "8"}, {"a": "1", "b": "2"})
    assert [(change.key, change.after) for change in plan.changes] == [
        ("b", "2"),
        ("a", "1"),
        ("c", "8"),
    ]
    assert plan.record == {"c": "9"}


def test_what_is_gone_is_lost_and_no_change():
    plan = settings.plan({"a": None}, {}, {"a": "1"})
    assert not plan.changed
    assert plan.lost == ("a",)


def test_a_value_that_was_right_already_is_not_touched_at_the_end():
    plan = settings.plan({"a": "1"}, {"a": "1"}, {})
    assert not plan.changed
    assert plan.record == {}


def test_the_difference_names_what_is_not_there_yet():
    assert settings.diff([Change("a", None, "1"), Change("b", "0", "2")]) == {
        "before": "a = (absent)\nb = 0\n",
        "after": "a = 1\nb = 2\n",
    }


@given(HOST, st.lists(DECLARED, min_size=1, max_size=5))
def test_any_series_of_declarations_ends_where_it_began(host, declarations):
    now, record = host, {}
    for declared in [*declarations, {}]:
        plan = settings.plan(now, declared, record)
        now, record = carry_out(now, plan), plan.record
        assert all(now[key] == value for key, value in declared.items())
        again = settings.plan(now, declared, record)
        assert not again.changed
        assert again.record == record
    assert now == host
    assert record == {}


@given(HOST, DECLARED, st.integers(0, 4))
def test_taking_back_what_was_done_of_a_plan_leaves_no_trace(host, declared, done):
    changes = settings.plan(host, declared, {}).changes[:done]
    now = dict(host)
    for change in [*changes, *settings.undo(changes)]:
        now[change.key] = change.after
    assert now == host
