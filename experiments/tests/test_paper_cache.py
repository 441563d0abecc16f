"""Steps are done once; arrays come back as they were."""

import pytest
import torch

from experiments.cache import load_arrays, save_arrays, step
from torchsite.errors import ConfigError, DataError


def test_a_step_is_taken_once_and_refused_under_other_settings(tmp_path):
    path = tmp_path / "step.json"
    assert step(path, {"a": 1}, lambda: {"x": 1}).values == {"x": 1}
    assert step(path, {"a": 1}, lambda: pytest.fail("done twice")).values == {"x": 1}
    with pytest.raises(ConfigError, match="other settings"):
        step(path, {"a": 2}, lambda: {"x": 2})


def test_arrays_come_back_and_damaged_ones_are_named(tmp_path):
    arrays = {"maps": torch.randn(2, 3), "site.grad_cam": torch.arange(4)}
    path = save_arrays(tmp_path / "arrays.npz", arrays)
    back = load_arrays(path)
    assert all(torch.equal(back[name], arrays[name]) for name in arrays)
    path.write_bytes(b"no arrays")
    with pytest.raises(DataError, match="holds no arrays"):
        load_arrays(path)
    with pytest.raises(DataError, match="run the experiment"):
        load_arrays(tmp_path / "nothing.npz")
