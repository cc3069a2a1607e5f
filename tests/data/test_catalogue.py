"""Labels to positions: what counts as the same label, what is refused, what is suggested."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpplearn import InputError
from dpplearn.data.catalogue import LARGEST, Catalogue, labels_from_text
from helpers.strategies import integers, names

NURSERY = Catalogue.of(["crib", "monitor", "bottle", "bottle brush"])


@given(st.lists(names, min_size=1, unique=True) | st.lists(integers, min_size=1, unique=True), st.randoms())
def test_every_label_is_found_where_it_stands(labels: list[Any], random: Any) -> None:
    catalogue = Catalogue.of(labels)
    order = list(range(len(labels)))
    random.shuffle(order)
    assert catalogue.labels == tuple(labels)
    assert catalogue.positions([labels[i] for i in order]).tolist() == order
    assert catalogue.select(order) == tuple(labels[i] for i in order)


def test_numbers_are_found_as_integer_and_as_text_and_not_by_position() -> None:
    names, integers = Catalogue.of(["2", "1", "0"]), Catalogue.of([20, 10])
    assert names.position(2) == names.position("2") == names.position(np.int32(2)) == 0
    assert integers.position("10") == integers.position(10) == 1
    for label in (0, "020", "+20", "20.0", " 20", "٢٠"):
        with pytest.raises(InputError):
            integers.position(label)


@pytest.mark.parametrize("label", [2.0, None, float("nan"), True, np.True_, b"crib", ("crib",), ["crib"]])
def test_a_label_that_is_neither_a_string_nor_an_integer_is_refused(label: Any) -> None:
    with pytest.raises(InputError):
        NURSERY.position(label)
    with pytest.raises(InputError):
        Catalogue.of([label])


@pytest.mark.parametrize(
    ("label", "named"),
    [("crip", "'crib'"), ("Monitor", "'monitor'"), ("botle", "'bottle'.*'bottle brush'"), ("xyz", "4")],
)
def test_an_unknown_name_is_an_error_with_the_closest_names_or_the_number_of_items(label: str, named: str) -> None:
    with pytest.raises(InputError, match=rf"'{label}'.*{named}"):
        NURSERY.position(label)


def test_positions_need_a_list_of_different_labels() -> None:
    with pytest.raises(InputError, match="'crib'"):
        NURSERY.positions(["crib", "bottle", "crib"])
    with pytest.raises(InputError, match="2"):
        Catalogue.of([1, 2]).positions([2, "2"])
    for one in ("crib", b"crib", 3, None):
        with pytest.raises(InputError):
            NURSERY.positions(one)


def test_invalid_catalogues_are_rejected_and_a_numbered_one_starts_at_zero() -> None:
    for labels in ([], ["a", "b", "a"], [1, 2, np.int64(1)], ["a", 1], "crib"):
        with pytest.raises(InputError):
            Catalogue.of(labels)
    assert Catalogue.numbered(3).labels == (0, 1, 2)
    for n_items in (0, -1, 2.5, LARGEST + 1):
        with pytest.raises(InputError):
            Catalogue.numbered(n_items)


def test_texts_become_integers_only_if_all_are_plain_64_bit_integers() -> None:
    assert labels_from_text(["3", "-1", "9" * 18, str(2**63 - 1)]) == [3, -1, 10**18 - 1, 2**63 - 1]
    for text in ("", "-", "--1", "-0", "00", "012", "+1", "1.0", "1e3", " 1", "1 ", "1_000", "²", "٣", str(2**63)):
        assert labels_from_text(["3", "-1", text]) == ["3", "-1", text]
