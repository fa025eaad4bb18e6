"""Which configurations are neighbouring kernels."""

from hypothesis import given
from hypothesis import strategies as st

from collector.compare.neighbours import neighbouring


def test_each_kernel_is_compared_with_the_one_before_it_under_the_same_factors():
    factors = {
        f"{kernel}_{irq}": {"kernel": kernel, "irq": irq}
        for irq in ("default", "pinned")
        for kernel in ("6.1", "6.6", "6.12")
    }
    assert neighbouring(factors) == [
        ("6.1_default", "6.6_default"),
        ("6.6_default", "6.12_default"),
        ("6.1_pinned", "6.6_pinned"),
        ("6.6_pinned", "6.12_pinned"),
    ]


def test_configurations_without_a_kernel_have_no_neighbours():
    assert neighbouring({"a": {}, "b": {"irq": "default"}}) == []


@given(st.dictionaries(st.text(min_size=1), st.sampled_from(["x", "y"]), max_size=8))
def test_a_kernel_has_at_most_one_neighbour_on_either_side(names):
    factors = {name: {"kernel": name, "other": other} for name, other in names.items()}
    pairs = neighbouring(factors)
    assert len({base for base, _ in pairs}) == len(pairs) == len({new for _, new in pairs})
    assert all(factors[base]["other"] == factors[new]["other"] for base, new in pairs)
