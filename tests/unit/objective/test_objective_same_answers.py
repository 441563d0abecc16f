"""Same answers: zero where the two agree, and training brings them together."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchsite.errors import ConfigError
from torchsite.objective import SameAnswers
from torchsite.objective.same_answers import divergence, read_answers, write_answers
from torchsite.training import fit
from training_makers import digits, make_config, make_site


@given(st.integers(0, 2**32), st.floats(0.5, 4))
def test_it_is_zero_for_equal_probabilities_and_positive_for_others(seed, temperature):
    rng = torch.Generator().manual_seed(seed)
    ours, theirs = torch.randn(2, 5, 4, generator=rng, dtype=torch.float64)
    assert float(divergence(theirs + 3.0, theirs, temperature)) == pytest.approx(0, abs=1e-12)
    assert float(divergence(ours, theirs, temperature)) > 0


@pytest.mark.slow
def test_training_brings_the_answers_together(tmp_path):
    """The labels say nothing of the other's answers, which are theirs turned by three."""
    data = digits(96)
    theirs = 4.0 * torch.nn.functional.one_hot((data.labels + 3) % 10, 10).float()
    file = write_answers(tmp_path / "answers.safetensors", theirs)
    term = {"name": "same_answers", "answers": str(file), "weight": 20.0}
    agreed = {}
    for name, terms in {"alone": [], "with": [term]}.items():
        model = make_site()
        config = make_config(epochs=12, terms=terms, views=["upright"], learning_rate=0.01)
        fit(model, data, config, validation=data[:10], folder=tmp_path / name)
        with torch.no_grad():
            agreed[name] = float((model(data).argmax(1) == theirs.argmax(1)).float().mean())
    assert agreed["with"] > agreed["alone"] + 0.2


def test_the_file_must_fit(tmp_path):
    file = write_answers(tmp_path / "a.safetensors", torch.zeros(7, 10))
    assert read_answers(file).shape == (7, 10)
    with pytest.raises(ConfigError, match="answers"):
        SameAnswers(answers=str(file)).memory(make_site(), digits(8))
    with pytest.raises(ConfigError, match="answers"):
        SameAnswers(answers=str(tmp_path / "none")).memory(make_site(), digits(8))
    for wrong in ({"answers": ""}, {"answers": "a", "temperature": 0.0}):
        with pytest.raises(ConfigError, match="same_answers"):
            SameAnswers(**wrong)
