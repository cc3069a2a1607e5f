"""Large files are memory-mapped and small ones are read; changed files are rejected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpplearn import InputError
from dpplearn.utils.tensor_file import read_tensors, write_tensors

ARRAYS = {
    "a": np.linspace(0, 1, 7, dtype=np.float32),
    "b": np.arange(12, dtype=np.int32).reshape(3, 4),
    "none": np.zeros((0, 2)),
    "c": np.array([True, False]),
    "d": np.array([2.5]),
}


def test_a_mapped_file_has_the_written_arrays_and_a_changed_one_is_rejected(tmp_path: Path) -> None:
    write_tensors(tmp_path / "m", "model", ARRAYS, {"items": ["α"]})
    arrays, document = read_tensors(tmp_path / "m", "model", max_read=0)
    assert document["items"] == ["α"]
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(arrays[name], array)
        assert not arrays[name].flags.writeable
    content = (tmp_path / "m").read_bytes()
    for changed in (content[:-1], content.replace("α".encode()[:1], b"\xce")[:-3], content.replace(b"items", b"itens")):
        (tmp_path / "m").write_bytes(changed)
        with pytest.raises(InputError):
            read_tensors(tmp_path / "m", "model", max_read=0)
